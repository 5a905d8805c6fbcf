from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from tests.shop.workflows import Approval, OneStep, WaitForGo
from tests.support import ONCE, events, kinds, later, settled
from workflow_engine import Context, Sleep, Workflow, engine, signals, step
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.testing import drain, reload

Told = list[tuple[str, Any, WorkflowEvent]]


@contextmanager
def listening(*names: str) -> Iterator[Told]:
    """What receivers were told, as (signal, sender, event); of all signals, or of these."""
    told: Told = []

    def receiver(of: str) -> Callable[..., None]:
        def receive(sender: Any, event: WorkflowEvent, instance_id: Any, **_: Any) -> None:
            assert event.instance_id == instance_id
            told.append((of, sender, event))

        return receive

    receivers = {name: receiver(name) for name in names or signals.BY_EVENT_KIND}
    for name, receive in receivers.items():
        signals.BY_EVENT_KIND[name].connect(receive)
    try:
        yield told
    finally:
        for name, receive in receivers.items():
            signals.BY_EVENT_KIND[name].disconnect(receive)


@pytest.mark.django_db(transaction=True)
def test_every_event_of_that_name_is_sent_once_as_it_was_stored_with_the_workflow_class_as_sender() -> None:
    with listening() as told:
        instance = settled(engine.start(Approval))
        engine.signal(instance, "approved", actor="riley")
        instance = settled(instance)

    stored = [event for event in events(instance) if event.kind in signals.BY_EVENT_KIND]
    assert [name for name, _, _ in told] == [event.kind for event in stored] == kinds(instance)
    assert [event for _, _, event in told] == stored
    assert {sender for _, sender, _ in told} == {Approval}
    assert [event.data for _, _, event in told] == [event.data for event in stored]


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sent_before_the_commit_and_nothing_after_a_rollback() -> None:
    with listening() as told:
        with transaction.atomic():
            engine.start(OneStep)
            assert told == []
        assert [name for name, _, _ in told] == ["workflow_started"]
        told.clear()
        with transaction.atomic():
            engine.start(OneStep)
            transaction.set_rollback(True)
        assert told == []


@pytest.mark.django_db(transaction=True)
def test_a_receiver_sees_the_committed_row() -> None:
    seen: list[str] = []

    def look(instance_id: Any, **_: Any) -> None:
        assert not transaction.get_connection().in_atomic_block
        seen.append(reload(instance_id).status)

    signals.workflow_awaiting.connect(look)
    try:
        settled(engine.start(WaitForGo))
    finally:
        signals.workflow_awaiting.disconnect(look)

    assert seen == ["awaiting"]


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_raises_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("receiver")

    signals.workflow_started.connect(fail)
    signals.step_completed.connect(fail)
    try:
        with listening() as told:
            instance = settled(engine.start(OneStep))
    finally:
        signals.workflow_started.disconnect(fail)
        signals.step_completed.disconnect(fail)

    assert instance.status == "completed"
    assert [name for name, _, _ in told] == ["workflow_started", "step_completed", "workflow_completed"]
    assert "receiver" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_receiver_may_start_and_signal() -> None:
    def chain(**_: Any) -> None:
        engine.start(OneStep, idempotency_key="follow-up")

    signals.workflow_completed.connect(chain)
    try:
        settled(engine.start(OneStep))
        drain()
    finally:
        signals.workflow_completed.disconnect(chain)

    assert {instance.status for instance in WorkflowInstance.objects.all()} == {"completed"}
    assert WorkflowInstance.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_sender_is_none_where_there_is_no_code_for_the_instance() -> None:
    class Gone(Workflow):
        name = "gone"

        @step
        def only(self, ctx: Context) -> None: ...

    instance = engine.start(Gone)
    engine.cancel(instance)
    with registry.isolated(), listening() as told:
        del registry._classes["gone", 1]
        drain()

    assert [(name, sender) for name, sender, _ in told] == [("workflow_cancelled", None)]


@pytest.mark.django_db(transaction=True)
def test_each_signal_there_is_is_sent_by_what_it_is_named_after() -> None:
    broken = [True]

    class Everything(Workflow):
        name = "everything"

        @step
        def nap(self, ctx: Context) -> Sleep:
            return Sleep(60)

        @step(retry=ONCE)
        def work(self, ctx: Context) -> None:
            if broken[0]:
                raise ValueError("broken")

    with listening() as told:
        instance = settled(engine.start(Everything))
        engine.pause(instance)
        settled(instance)
        engine.resume(instance)
        instance = later(settled(instance), seconds=61)
        engine.retry(instance)
        instance = settled(instance)
        broken[0] = False
        engine.retry(instance)
        settled(instance)
        late = settled(engine.start(Approval))
        later(late, hours=1)
        engine.cancel(engine.start(OneStep))
        drain()

    names = {name for name, _, _ in told}
    of_undo = {"workflow_compensating", "step_compensated", "compensation_failed", "workflow_compensated"}
    assert names == set(signals.BY_EVENT_KIND) - of_undo - {"signal_received"}


def test_in_a_test_case_whose_transaction_never_commits_a_drain_sends_them_at_its_end() -> None:
    with listening("workflow_completed") as told:
        instance = engine.start(OneStep)
        drain()

    assert [event.instance_id for _, _, event in told] == [instance.pk]
