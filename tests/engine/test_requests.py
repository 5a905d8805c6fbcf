from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.engine.broken import Broken
from tests.shop.models import Effect
from tests.shop.workflows import Approval, CountUp, OneStep, WaitForGo
from tests.support import THRICE, error_of, events, later, mailbox, settled
from workflow_engine import Await, Context, Outcome, Signal, Sleep, Workflow, clock, engine, step
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload


def test_a_paused_instance_does_nothing_until_it_resumes() -> None:
    instance = engine.start(CountUp)
    engine.advance(instance)
    sent = engine.pause(instance, reason="stocktaking", actor="riley")
    instance = settled(instance)

    assert (instance.status, instance.paused, instance.poll_at) == ("in_progress", True, None)
    assert Effect.objects.count() == 1
    (paused,) = events(instance, "workflow_paused")
    assert (paused.actor, paused.trigger, paused.data["reason"]) == ("riley", f"signal:{sent.pk}", "stocktaking")
    assert later(instance, days=10).current_step == "second"

    engine.resume(instance, reason="counted", actor="sam")
    instance = settled(instance)

    assert (instance.status, instance.paused) == ("completed", False)
    (resumed,) = events(instance, "workflow_resumed")
    assert (resumed.actor, resumed.data["reason"]) == ("sam", "counted")
    assert mailbox(instance) == [("pause", "consumed"), ("resume", "consumed")]


def test_an_instance_that_resumes_does_at_once_what_became_due_meanwhile() -> None:
    instance = settled(engine.start(Approval))
    engine.pause(instance)
    instance = settled(instance)
    instance = later(instance, hours=5)
    assert instance.status == "awaiting"

    engine.resume(instance)

    assert error_of(settled(instance)) == ("Timeout", "approved, refused did not arrive in time")


def test_a_signal_to_a_paused_instance_is_kept_and_beats_the_deadline_that_passed() -> None:
    instance = settled(engine.start(Approval))
    engine.pause(instance)
    settled(instance)
    clock.shift(timedelta(hours=5))
    engine.signal(instance, "approved", actor="riley")
    instance = settled(instance)
    assert (instance.status, mailbox(instance)[-1]) == ("awaiting", ("approved", "buffered"))

    engine.resume(instance)
    instance = settled(instance)

    assert (instance.status, instance.context["by"]) == ("completed", "riley")


def test_a_pause_that_comes_with_a_signal_leaves_the_signal_for_afterwards() -> None:
    instance = settled(engine.start(Approval))
    engine.pause(instance)
    engine.signal(instance, "approved")
    instance = settled(instance)

    assert (instance.status, instance.paused) == ("awaiting", True)
    assert mailbox(instance) == [("pause", "consumed"), ("approved", "buffered")]


def test_a_signal_that_came_before_the_pause_is_taken_before_it() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "go")
    engine.pause(instance)
    instance = settled(instance)

    assert (instance.status, instance.current_step, instance.paused) == ("in_progress", "after", True)
    assert mailbox(instance) == [("go", "consumed"), ("pause", "consumed")]


@pytest.mark.parametrize("workflow", [OneStep, WaitForGo, Approval])
def test_a_cancelled_instance_ends_and_its_mail_is_discarded(workflow: type[Workflow[Any]]) -> None:
    instance = engine.start(workflow)
    if workflow is not OneStep:
        instance = settled(instance)
    engine.signal(instance, "early")
    sent = engine.cancel(instance, reason="changed mind", actor="zoë")
    late = engine.signal(instance, "late")
    instance = settled(instance)
    late.refresh_from_db()

    assert (instance.status, instance.error, instance.awaiting_signals) == ("cancelled", None, [])
    assert instance.due_at is instance.poll_at is instance.deadline_at is None
    assert instance.finished_at is not None
    (cancelled,) = events(instance, "workflow_cancelled")
    assert (cancelled.actor, cancelled.trigger, cancelled.data["reason"]) == (
        "zoë",
        f"signal:{sent.pk}",
        "changed mind",
    )
    assert mailbox(instance) == [("early", "discarded"), ("cancel", "consumed"), ("late", "discarded")]
    assert late.reason == "the instance had ended: cancelled"


def test_a_paused_instance_can_be_cancelled() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.pause(instance)
    engine.cancel(instance)
    instance = settled(instance)

    assert (instance.status, instance.paused) == ("cancelled", False)


def test_a_sleeping_instance_can_be_cancelled() -> None:
    class Sleeps(Workflow):
        name = "sleeps"

        @step
        def nap(self, ctx: Context) -> Outcome:
            return Sleep(timedelta(days=9))

    instance = settled(engine.start(Sleeps))
    engine.cancel(instance)

    assert settled(instance).status == "cancelled"
    assert later(instance, days=10).status == "cancelled"


def test_a_handler_that_waits_for_its_retry_is_not_called_after_a_cancel() -> None:
    calls: list[int] = []

    class Shaky(Workflow):
        name = "shaky"

        @step(retry=THRICE)
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> None:
            calls.append(ctx.attempt)
            raise ValueError("no")

    instance = settled(engine.start(Shaky))
    engine.signal(instance, "go")
    settled(instance)
    engine.cancel(instance)
    instance = settled(instance)

    assert (instance.status, instance.handling, mailbox(instance)) == (
        "cancelled",
        "",
        [("go", "discarded"), ("cancel", "consumed")],
    )
    later(instance, hours=1)
    assert calls == [1]


def test_a_retry_runs_the_failed_step_again_in_the_same_visit_with_the_same_key_and_fresh_attempts() -> None:
    broken = Broken()
    instance = settled(engine.start(broken.workflow))
    assert (instance.status, instance.current_step, instance.attempts) == ("failed", "work", 1)

    engine.retry(instance, reason="once more", actor="riley")
    instance = settled(instance)
    assert (instance.status, instance.visit, instance.attempts) == ("failed", 2, 1)

    broken.broken = False
    engine.retry(instance, reason="mended", actor="riley")
    instance = settled(instance)

    assert (instance.status, instance.error, instance.finished_at is None) == ("completed", None, False)
    assert [event.data["reason"] for event in events(instance, "workflow_retried")] == ["once more", "mended"]
    assert len(broken.keys) == 3
    assert len(set(broken.keys)) == 1
    assert [effect.step for effect in Effect.objects.order_by("id")] == ["before", "work"]


def test_a_retried_instance_is_live_again() -> None:
    broken = Broken()
    instance = settled(engine.start(broken.workflow, subject=("shop.order", 1)))
    assert not WorkflowInstance.objects.live().exists()

    engine.retry(instance)
    engine.advance(instance)

    instance = reload(instance)
    assert (instance.status, instance.finished_at) == ("in_progress", None)
    assert list(WorkflowInstance.objects.live().for_subject(("shop.order", 1))) == [instance]
