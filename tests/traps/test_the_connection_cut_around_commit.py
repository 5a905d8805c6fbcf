"""The connection breaks while COMMIT is on its way: the client gets the same error whether it was carried out or not.

So the engine reads again. What is there is done, what is not there is done again, and nobody is told of a failure.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tests.shop.models import Counter
from tests.support import ONCE, kinds, mailbox
from tests.traps import needs
from tests.traps.background import connection_settings, eventually, until_somebody_waits_for_a_lock
from tests.traps.proxy import Cut, Proxy
from workflow_engine import Await, Context, Workflow, activity, engine, signals, step
from workflow_engine.engine import Answer, claims
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.testing import reload

pytestmark = [pytest.mark.django_db(transaction=True), needs.server]

CUTS = pytest.mark.parametrize("cut", [Cut.ANSWER, Cut.REQUEST])


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    settings = connection.settings_dict
    proxy = Proxy((settings["HOST"], int(settings["PORT"])))
    plain = {"sslmode": "disable"} if connection.vendor == "postgresql" else {}
    with connection_settings(HOST="127.0.0.1", PORT=str(proxy.port), OPTIONS=plain):
        yield proxy
    proxy.close()


@pytest.fixture
def sent(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The kinds of the events that receivers were told of."""
    told: list[str] = []

    def receive(event: Any, **_: Any) -> None:
        told.append(event.kind)

    for signal in signals.BY_EVENT_KIND.values():
        signal.connect(receive)
    yield told
    for signal in signals.BY_EVENT_KIND.values():
        signal.disconnect(receive)


def define(calls: list[int]) -> type[Workflow]:
    """A workflow that notes the attempts of its first step in `calls`."""

    class Ordering(Workflow):
        name = "ordering"

        @step(retry=ONCE)
        def reserve(self, ctx: Context) -> None:
            calls.append(ctx.attempt)
            Counter.objects.create(name=f"reserved {len(calls)}")

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("paid")

    return Ordering


@CUTS
def test_a_step_is_done_once(cut: Cut, proxy: Proxy, sent: list[str]) -> None:
    calls: list[int] = []
    instance = engine.start(define(calls))
    proxy.cut(cut)
    advanced = engine.advance(instance)
    assert proxy.has_cut.is_set()
    assert (advanced.answer, advanced.more) == (Answer.ADVANCED, True)
    instance = reload(instance)
    assert (instance.current_step, instance.version) == ("wait", 2)
    assert kinds(instance) == ["workflow_started", "step_completed"]
    assert sent == ["workflow_started", "step_completed"]
    assert calls == ([1] if cut is Cut.ANSWER else [1, 1])
    assert list(Counter.objects.values_list("name", flat=True)) == [f"reserved {len(calls)}"]


@CUTS
@pytest.mark.parametrize("key", [None, "order-1"])
def test_an_instance_is_started_once(key: str | None, cut: Cut, proxy: Proxy, sent: list[str]) -> None:
    proxy.cut(cut)
    instance = engine.start(define([]), idempotency_key=key)
    assert proxy.has_cut.is_set()
    assert [row.pk for row in WorkflowInstance.objects.all()] == [instance.pk]
    assert kinds(instance) == sent == ["workflow_started"]


@CUTS
@pytest.mark.parametrize("key", [None, "event-1"])
def test_a_signal_is_sent_once(key: str | None, cut: Cut, proxy: Proxy) -> None:
    instance = engine.start(define([]))
    proxy.cut(cut)
    item = engine.signal(instance, "paid", {"id": 1}, idempotency_key=key)
    assert proxy.has_cut.is_set()
    assert [row.pk for row in WorkflowSignal.objects.all()] == [item.pk]
    assert mailbox(instance) == [("paid", "pending")]


@pytest.mark.parametrize("key", [None, "order-1"])
def test_a_start_whose_commit_arrives_late_is_one_start(key: str | None, proxy: Proxy) -> None:
    proxy.cut(Cut.LATE, meanwhile=until_somebody_waits_for_a_lock)
    instance = engine.start(define([]), idempotency_key=key)
    assert proxy.is_over.wait(60)
    assert [row.pk for row in WorkflowInstance.objects.all()] == [instance.pk]
    assert kinds(instance) == ["workflow_started"]


@pytest.mark.parametrize("key", [None, "event-1"])
def test_a_signal_whose_commit_arrives_late_is_one_signal(key: str | None, proxy: Proxy) -> None:
    instance = engine.start(define([]))
    proxy.cut(Cut.LATE, meanwhile=until_somebody_waits_for_a_lock)
    item = engine.signal(instance, "paid", idempotency_key=key)
    assert proxy.is_over.wait(60)
    assert [row.pk for row in WorkflowSignal.objects.all()] == [item.pk]


def test_while_the_server_is_away_the_engine_asks_until_it_knows(proxy: Proxy) -> None:
    proxy.cut(Cut.ANSWER, refuse=3)
    instance = engine.start(define([]))
    assert proxy.has_cut.is_set()
    assert [row.pk for row in WorkflowInstance.objects.all()] == [instance.pk]


def test_another_workers_turn_is_not_taken_for_ones_own(proxy: Proxy, sent: list[str]) -> None:
    """What was lost is not done again: the next turn is another step's."""
    calls: list[int] = []
    instance = engine.start(define(calls))
    sent.clear()

    def advance_elsewhere() -> bool:
        return engine.advance(instance).answer == Answer.ADVANCED

    proxy.cut(Cut.REQUEST, meanwhile=lambda: eventually(advance_elsewhere))
    assert engine.advance(instance).answer == Answer.ADVANCED
    assert proxy.is_over.wait(60)
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_awaiting"]
    assert sent == ["step_completed", "workflow_awaiting"]
    assert list(Counter.objects.values_list("name", flat=True)) == ["reserved 2"]


@CUTS
@pytest.mark.parametrize("which", ["claim", "record"])
def test_an_activity_runs_once_and_is_recorded_once(which: str, cut: Cut, proxy: Proxy) -> None:
    calls: list[int] = []

    class Charging(Workflow):
        name = "charging"

        @activity(retry=ONCE)
        def charge(self, ctx: Context) -> None:
            calls.append(ctx.attempt)

        @step
        def ship(self, ctx: Context) -> None: ...

    instance = engine.start(Charging)
    proxy.cut(cut, after={"claim": 0, "record": 1}[which])
    assert engine.advance(instance).answer == Answer.ADVANCED
    assert proxy.has_cut.is_set()
    assert calls == [1]
    assert kinds(instance) == ["workflow_started", "step_started", "step_completed"]


def test_an_activity_claimed_by_another_worker_meanwhile_is_left_to_it(proxy: Proxy) -> None:
    ran_in: list[int] = []

    class Charging(Workflow):
        name = "charging"

        @activity(retry=ONCE)
        def charge(self, ctx: Context) -> None:
            ran_in.append(threading.get_ident())

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("shipped")

    instance = engine.start(Charging)

    def advance_elsewhere() -> bool:
        return engine.advance(instance).answer == Answer.ADVANCED

    proxy.cut(Cut.REQUEST, meanwhile=lambda: eventually(advance_elsewhere))
    assert engine.advance(instance).answer == Answer.ADVANCED  # the step after it
    assert reload(instance).status == "awaiting"
    assert len(ran_in) == 1
    assert threading.get_ident() not in ran_in


@CUTS
def test_a_heartbeat_is_sent_again(cut: Cut, proxy: Proxy) -> None:
    class Charging(Workflow):
        name = "charging"

        @activity(retry=ONCE)
        def charge(self, ctx: Context) -> None:
            proxy.cut(cut)
            ctx.heartbeat()

        @step
        def ship(self, ctx: Context) -> None: ...

    instance = engine.start(Charging)
    engine.advance(instance)
    assert proxy.has_cut.is_set()
    assert reload(instance).current_step == "ship"


@CUTS
def test_a_worker_that_holds_an_instance_knows_it(cut: Cut, proxy: Proxy) -> None:
    instance = engine.start(define([]))
    proxy.cut(cut)
    assert claims.hold(instance.pk, "default") == Answer.ADVANCED
    assert proxy.has_cut.is_set()
    assert claims.hold(instance.pk, "default") == Answer.LOCKED


@CUTS
def test_a_claim_on_a_suspect_counts_once(cut: Cut, proxy: Proxy) -> None:
    instance = engine.start(define([]))
    WorkflowInstance.objects.filter(pk=instance.pk).update(suspect=True)
    proxy.cut(cut)
    assert claims.claim_suspect(instance.pk, "default").answer == Answer.SUSPECT
    assert proxy.has_cut.is_set()
    assert reload(instance).recoveries == 1
