"""A router that keeps the workflows, and what their steps write, in a second database.

These tests may not touch the first one: a query that the router did not send to the second fails the test, and so does
an on_commit hook there.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

import pytest
from django.db import connections, transaction
from django.db.models import Model
from pytest_django.fixtures import Settings

from tests.shop.models import Counter
from workflow_engine import Await, Context, Workflow, activity, clock, engine, signals, step
from workflow_engine.dispatch import Dispatcher
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal
from workflow_engine.prune import prunable, prune
from workflow_engine.testing import drain, reload
from workflow_engine.tick import tick
from workflow_engine.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True, databases=["other"])


class SecondDatabase:
    """The router."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        """Everything is read there."""
        return "other"

    db_for_write = db_for_read


@pytest.fixture
def routed(settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [SecondDatabase()]


class Recorder(Dispatcher):
    """Notes what is handed out, where, and whether that was committed by then."""

    pushes: ClassVar[bool] = True
    handed: ClassVar[list[tuple[UUID, str]]] = []

    def dispatch(self, instance_id: UUID, *, using: str, **_: Any) -> None:
        """Note it."""
        assert not connections[using].in_atomic_block
        self.handed.append((instance_id, using))


def define() -> type[Workflow]:
    class Shipping(Workflow):
        name = "shipping"

        @step
        def pack(self, ctx: Context) -> dict[str, Any]:
            Counter.objects.using("other").create(name=f"packed {ctx.attempt}")
            assert ctx.subject is None or ctx.subject.name == "subject"
            return {"packed": True}

        @pack.compensation
        def unpack(self, ctx: Context, result: Any) -> None:
            Counter.objects.using("other").create(name=f"unpacked {result['packed']}")

        @activity
        def print_label(self, ctx: Context) -> dict[str, Any]:
            ctx.heartbeat()
            return {"packed_before": ctx.results["pack"]["packed"]}

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("shipped", timeout=timedelta(days=1))

    return Shipping


def names() -> list[str]:
    return sorted(Counter.objects.using("other").values_list("name", flat=True))


def in_other(instance: WorkflowInstance) -> WorkflowInstance:
    assert instance._state.db == "other"
    return reload(instance, using="other")


def test_a_whole_life_is_lived_in_the_database_that_the_router_names(routed: None) -> None:
    told: list[str] = []

    def receive(event: WorkflowEvent, **_: Any) -> None:
        assert event._state.db == "other"
        told.append(event.kind)

    for signal in signals.BY_EVENT_KIND.values():
        signal.connect(receive)
    subject = Counter.objects.create(name="subject")
    instance = engine.start(define(), subject=subject, idempotency_key="order-1")
    assert engine.start("shipping", subject=subject, idempotency_key="order-1").pk == instance.pk
    assert Worker("other").run(burst=True) == 1
    assert in_other(instance).status == "awaiting"
    engine.signal_subject(subject, "shipped", {"by": "post"}, idempotency_key="event-1")
    assert drain() == 1
    instance = in_other(instance)
    assert (instance.status, instance.context["by"], names()) == ("completed", "post", ["packed 1", "subject"])
    assert told[0] == "workflow_started"
    assert told[-1] == "workflow_completed"
    for signal in signals.BY_EVENT_KIND.values():
        signal.disconnect(receive)
    clock.shift(timedelta(days=100))
    assert prune(prunable("other", timedelta(days=90))).instances == 1
    assert not WorkflowInstance.objects.exists()
    assert not WorkflowEvent.objects.exists()


def test_nothing_leaves_before_the_commit_of_that_database(routed: None, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCHER": f"{__name__}.Recorder"}
    Recorder.handed.clear()
    workflow = define()
    with transaction.atomic(using="other"):
        engine.start(workflow)
        transaction.set_rollback(True, using="other")
    assert (Recorder.handed, WorkflowInstance.objects.count()) == ([], 0)
    with transaction.atomic(using="other"):
        instance = engine.start(workflow)
        engine.signal(instance, "shipped")
        assert Recorder.handed == []
    assert Recorder.handed == [(instance.pk, "other")] * 2
    clock.shift(timedelta(seconds=61))
    assert tick("other").handed_out == 1
    assert Recorder.handed == [(instance.pk, "other")] * 3


def test_requests_and_undo_work_there_too(routed: None) -> None:
    instance = engine.start(define())
    engine.drive(instance)
    engine.pause(instance)
    engine.drive(instance)
    engine.resume(instance)
    engine.cancel(instance)
    engine.drive(instance)
    assert in_other(instance).status == "cancelled"
    assert names() == ["packed 1", "unpacked True"]
    assert set(WorkflowSignal.objects.values_list("state", flat=True)) == {"consumed"}


def test_without_a_router_using_says_where() -> None:
    instance = engine.start(define(), using="other")
    assert engine.drive(instance, using="other").answer == "advanced"
    engine.signal(str(instance.pk), "shipped", using="other")
    assert engine.advance(instance.pk, using="other").answer == "advanced"
    assert in_other(instance).status == "completed"


def test_an_instance_is_looked_for_where_it_came_from() -> None:
    """The instance itself tells the router, as related objects do in Django."""
    instance = engine.start(define(), using="other")
    engine.drive(instance)
    engine.signal(instance, "shipped")
    assert engine.drive(instance).answer == "advanced"
    assert in_other(instance).status == "completed"
