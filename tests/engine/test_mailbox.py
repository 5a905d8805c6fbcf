from __future__ import annotations

from typing import Any

import pytest

from tests.shop.workflows import Approval, OneStep, WaitForGo
from tests.support import ONCE, error_of, events, kinds, later, mailbox, settled
from workflow_engine import (
    Await,
    Context,
    Fail,
    Goto,
    InvalidStateError,
    Outcome,
    Signal,
    Workflow,
    engine,
    step,
)
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.testing import drain


class Taker:
    """A workflow that awaits "item" again and again, and what it was given."""

    def __init__(self) -> None:
        taken: list[Any] = []
        self.taken = taken

        class Takes(Workflow):
            name = "takes"

            @step
            def wait(self, ctx: Context) -> Outcome:
                return Await("item", "stop")

            @wait.on_signal
            def took(self, ctx: Context, signal: Signal) -> Outcome | None:
                taken.append(signal.data)
                return None if signal.name == "stop" else Goto("wait")

        self.workflow = Takes


def test_a_signal_that_is_awaited_ends_the_wait() -> None:
    instance = settled(engine.start(Approval))
    sent = engine.signal(instance, "approved", {"note": "ok"}, actor="riley")

    assert (sent.state, sent.kind, sent.name, sent.data, sent.actor) == (
        "pending",
        "signal",
        "approved",
        {"note": "ok"},
        "riley",
    )
    instance = settled(instance)
    sent.refresh_from_db()
    assert (instance.status, instance.context) == ("completed", {"by": "riley", "data": {"note": "ok"}})
    assert (sent.state, sent.consumed_step, sent.consumed_visit) == ("consumed", "ask", 1)
    assert sent.consumed_at is not None
    (received,) = events(instance, "signal_received")
    assert (received.actor, received.trigger, received.data["signal"], received.data["signal_id"]) == (
        "riley",
        f"signal:{sent.pk}",
        "approved",
        sent.pk,
    )


def test_a_handler_gets_the_signal_as_it_was_stored() -> None:
    seen: list[Signal] = []

    class Watches(Workflow):
        name = "watches"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

        @wait.on_signal
        def came(self, ctx: Context, signal: Signal) -> None:
            seen.append(signal)

    instance = settled(engine.start(Watches))
    sent = engine.signal(instance, "go", [1, "two"], idempotency_key="evt_1", actor="stripe")
    settled(instance)

    assert seen == [
        Signal(
            id=sent.pk,
            name="go",
            data=[1, "two"],
            actor="stripe",
            received_at=sent.received_at,
            idempotency_key="evt_1",
        )
    ]


def test_a_signal_sent_before_the_first_step_ran_is_taken_by_the_wait_that_comes() -> None:
    instance = engine.start(WaitForGo)
    engine.signal(instance, "go", {"early": True})

    instance = settled(instance)

    assert (instance.status, instance.context) == ("completed", {"early": True, "went": True})
    assert mailbox(instance) == [("go", "consumed")]
    assert kinds(instance) == [
        "workflow_started",
        "workflow_awaiting",
        "signal_received",
        "step_completed",
        "step_completed",
        "workflow_completed",
    ]


def test_a_signal_that_nothing_awaits_is_kept_and_stays_kept() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "come")

    instance = settled(instance)

    assert (instance.status, instance.awaiting_signals) == ("awaiting", ["go"])
    assert mailbox(instance) == [("come", "buffered")]
    assert kinds(instance) == ["workflow_started", "workflow_awaiting"]


def test_a_signal_with_an_object_is_merged_where_no_handler_asks_for_it() -> None:
    instance = settled(engine.start(WaitForGo, context={"a": 1, "b": 1}))
    engine.signal(instance, "go", {"b": 2, "c": 3})

    assert settled(instance).context == {"a": 1, "b": 2, "c": 3, "went": True}


@pytest.mark.parametrize(
    ("data", "merged"), [(5, {"go": 5}), (["x"], {"go": ["x"]}), (False, {"go": False}), (None, {})]
)
def test_data_that_is_no_object_goes_under_the_signals_name(data: Any, merged: dict[str, Any]) -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "go", data)

    assert settled(instance).context == {**merged, "went": True}


def test_signals_are_taken_in_the_order_in_which_they_came_whether_early_or_awaited() -> None:
    taker = Taker()
    instance = engine.start(taker.workflow)
    for number in range(3):
        engine.signal(instance, "item", number)
    settled(instance)
    for number in range(3, 6):
        engine.signal(instance, "item", number)
    engine.signal(instance, "stop", "stop")
    instance = settled(instance)

    assert taker.taken == [0, 1, 2, 3, 4, 5, "stop"]
    assert instance.status == "completed"
    assert [signal.data["signal"] for signal in events(instance, "signal_received")] == ["item"] * 6 + ["stop"]


def test_of_several_awaited_names_the_oldest_signal_goes_first() -> None:
    instance = engine.start(Approval)
    engine.signal(instance, "refused")
    engine.signal(instance, "approved")

    instance = settled(instance)

    assert (instance.status, error_of(instance)) == ("failed", ("Fail", "refused"))
    assert mailbox(instance) == [("refused", "consumed"), ("approved", "buffered")]


def test_names_are_compared_as_they_are_written() -> None:
    instance = settled(engine.start(WaitForGo))
    for name in ("Go", "go ", "gö"):
        engine.signal(instance, name)
    instance = settled(instance)

    assert instance.status == "awaiting"
    assert {state for _, state in mailbox(instance)} == {"buffered"}
    assert list(WorkflowInstance.objects.awaiting("go")) == [instance]
    assert not WorkflowInstance.objects.awaiting("Go").exists()


def test_what_an_ended_instance_can_not_use_any_more_is_discarded_with_the_reason() -> None:
    instance = engine.start(OneStep)
    engine.signal(instance, "go")

    instance = settled(instance)

    (row,) = WorkflowSignal.objects.all()
    assert (row.state, row.reason) == ("discarded", "the instance had ended: completed")


def test_a_signal_that_finds_the_instance_ended_meanwhile_is_discarded() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "go")
    late = engine.signal(instance, "come")
    settled(instance)

    late.refresh_from_db()
    assert (late.state, late.reason) == ("discarded", "the instance had ended: completed")


def test_a_signal_to_an_instance_that_has_ended_is_refused() -> None:
    instance = settled(engine.start(OneStep))

    with pytest.raises(InvalidStateError) as raised:
        engine.signal(instance, "go")

    assert str(raised.value) == (
        f"Can't signal workflow instance {instance.pk}: it is completed. It has ended and can't be changed any more."
    )
    assert mailbox(instance) == []


def test_a_failed_instance_keeps_its_mailbox_for_a_retry() -> None:
    fails = [True]

    class FailsOnce(Workflow):
        name = "fails_once"

        @step(retry=ONCE)
        def work(self, ctx: Context) -> Outcome | None:
            return Fail("not yet") if fails.pop() else None

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

    instance = engine.start(FailsOnce)
    engine.signal(instance, "go", {"kept": True})
    instance = settled(instance)
    assert (instance.status, mailbox(instance)) == ("failed", [("go", "buffered")])

    fails.append(False)
    engine.retry(instance)
    instance = settled(instance)

    assert (instance.status, instance.context) == ("completed", {"kept": True})
    assert mailbox(instance) == [("go", "consumed"), ("retry", "consumed")]


def test_a_signal_to_a_failed_instance_is_refused_with_the_way_out() -> None:
    instance = engine.start(Approval)
    engine.signal(instance, "refused")
    instance = settled(instance)

    with pytest.raises(InvalidStateError) as raised:
        engine.signal(instance, "approved")

    assert str(raised.value) == (
        f"Can't signal workflow instance {instance.pk}: it is failed. Retry it first, then send the signal."
    )


def test_the_mail_of_an_instance_that_is_gone_is_deleted() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "come")
    row = WorkflowInstance.objects.filter(pk=instance.pk)
    row._raw_delete(row.db)

    drain()

    assert not WorkflowSignal.objects.exists()
    # What the database can't cascade, because its tables have no constraint, is no part of this test.
    instance.events.all().delete()


def test_a_visible_signal_beats_the_timeout_whenever_it_was_received() -> None:
    instance = settled(engine.start(Approval))
    engine.signal(instance, "approved", actor="riley")

    instance = later(instance, hours=2)

    assert (instance.status, instance.context["by"]) == ("completed", "riley")
    assert "step_timed_out" not in kinds(instance)


def test_a_signal_after_the_timeout_stays_for_a_later_wait() -> None:
    class Patient(Workflow):
        name = "patient"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go", timeout=60)

        @wait.on_timeout
        def again(self, ctx: Context) -> Outcome:
            return Goto("last")

        @step
        def last(self, ctx: Context) -> Outcome:
            return Await("last" if "go" in ctx else "go")

    instance = settled(engine.start(Patient))
    instance = later(instance, seconds=61)
    engine.signal(instance, "go", 1)
    instance = settled(instance)

    assert (instance.status, instance.context) == ("completed", {"go": 1})
    assert [event.step for event in events(instance, "signal_received")] == ["last"]
