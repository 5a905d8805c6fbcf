from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.shop.models import Effect
from tests.shop.workflows import Approval, WaitForGo, leave_effect
from tests.support import ONCE, error_of, events, kinds, later, mailbox, seconds_until, settled
from workflow_engine import Await, Complete, Context, Finish, Goto, Outcome, Signal, Workflow, clock, engine, step
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload


def test_a_wait_without_an_end_waits_for_its_mailbox_only() -> None:
    instance = settled(engine.start(WaitForGo))

    assert (instance.status, instance.awaiting_signals) == ("awaiting", ["go"])
    assert instance.due_at is instance.poll_at is instance.deadline_at is None
    assert later(instance, days=10_000).status == "awaiting"
    assert list(WorkflowInstance.objects.awaiting()) == list(WorkflowInstance.objects.awaiting("go")) == [instance]
    assert not WorkflowInstance.objects.awaiting("come").exists()


def test_a_wait_with_a_duration_ends_that_much_later() -> None:
    instance = settled(engine.start(Approval))

    (parked,) = events(instance, "workflow_awaiting")
    assert instance.deadline_at == instance.due_at == instance.poll_at == parked.created_at + timedelta(hours=1)


def test_a_wait_until_a_moment_ends_then() -> None:
    moment = clock.now("default") + timedelta(days=2)

    class Until(Workflow):
        name = "until"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go", timeout=moment)

    instance = settled(engine.start(Until))

    assert instance.deadline_at == moment
    assert later(instance, days=1).status == "awaiting"
    assert later(instance, days=1, seconds=1).status == "failed"


def test_a_timeout_without_a_handler_fails_the_step_and_is_not_retried() -> None:
    instance = settled(engine.start(Approval))
    instance = later(instance, hours=1)

    assert (instance.status, instance.awaiting_signals, instance.deadline_at) == ("failed", [], None)
    assert error_of(instance) == ("Timeout", "approved, refused did not arrive in time")
    assert kinds(instance) == [
        "workflow_started",
        "workflow_awaiting",
        "step_timed_out",
        "step_failed",
        "workflow_failed",
    ]
    (timed_out,) = events(instance, "step_timed_out")
    assert (timed_out.trigger, timed_out.data["awaited"]) == ("timeout", ["approved", "refused"])


def test_a_retry_after_an_unhandled_timeout_runs_the_step_again_in_the_same_visit() -> None:
    instance = settled(engine.start(Approval))
    instance = later(instance, hours=1)
    engine.retry(instance)
    instance = settled(instance)

    assert (instance.status, instance.visit, instance.error) == ("awaiting", 1, None)
    assert seconds_until(instance.deadline_at) in range(3590, 3601)
    engine.signal(instance, "approved")
    assert settled(instance).status == "completed"


def test_a_timeout_may_lead_elsewhere() -> None:
    seen: list[tuple[list[str], datetime | None]] = []

    class Reminds(Workflow):
        name = "reminds"

        @step(goes_to=("remind",))
        def wait(self, ctx: Context) -> Outcome:
            return Await("paid", timeout=3600, updates={"asked": ctx.get("asked", 0) + 1})

        @wait.on_timeout
        def late(self, ctx: Context) -> Outcome:
            seen.append((list(ctx), ctx.deadline))
            leave_effect(ctx)
            return Goto("remind") if ctx["asked"] < 3 else Finish({"gave": "up"})

        @step(goes_to=("wait",))
        def remind(self, ctx: Context) -> Outcome:
            return Goto("wait")

    instance = settled(engine.start(Reminds))
    deadline = instance.deadline_at
    for _ in range(3):
        instance = later(instance, hours=1)

    assert (instance.status, instance.result, instance.context) == ("completed", {"gave": "up"}, {"asked": 3})
    assert seen[0] == (["asked"], deadline)
    assert list(Effect.objects.order_by("id").values_list("step", "visit")) == [("wait", 1), ("wait", 3), ("wait", 5)]
    assert [event.trigger for event in events(instance, "step_timed_out")] == ["timeout"] * 3


def test_a_wait_whose_deadline_is_over_when_it_begins_times_out_at_once_unless_the_signal_is_there() -> None:
    class Late(Workflow):
        name = "late"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go", timeout=ctx.now - timedelta(days=1))

    alone, served = engine.start(Late), engine.start(Late)
    engine.signal(served, "go")

    assert error_of(settled(alone)) == ("Timeout", "go did not arrive in time")
    assert settled(served).status == "completed"


class Approvals:
    """Two approvals in one visit; `keeps` lets the first deadline count for both."""

    def __init__(self, *, keeps: bool) -> None:
        class TwoApprovals(Workflow):
            name = "two_approvals"

            @step(retry=ONCE)
            def ask(self, ctx: Context) -> Outcome:
                return Await("approved", timeout=3600)

            @ask.on_signal
            def approved(self, ctx: Context, signal: Signal) -> Outcome:
                by = [*ctx.get("by", []), signal.actor]
                if len(by) == 2:
                    return Complete({"by": by})
                return Await("approved", timeout=ctx.deadline if keeps else 3600, updates={"by": by})

        self.workflow = TwoApprovals


def test_an_await_from_a_signals_handler_parks_the_same_visit_again() -> None:
    instance = settled(engine.start(Approvals(keeps=False).workflow))
    first_deadline = instance.deadline_at
    clock.shift(timedelta(minutes=30))
    engine.signal(instance, "approved", actor="ann")
    instance = settled(instance)

    assert (instance.status, instance.visit, instance.context) == ("awaiting", 1, {"by": ["ann"]})
    assert first_deadline is not None
    assert instance.deadline_at is not None
    assert instance.deadline_at > first_deadline + timedelta(minutes=29)
    engine.signal(instance, "approved", actor="ben")
    instance = settled(instance)
    assert (instance.status, instance.context) == ("completed", {"by": ["ann", "ben"]})
    assert [event.visit for event in events(instance, "workflow_awaiting")] == [1, 1]


def test_a_wait_that_is_parked_again_with_the_deadline_keeps_the_clock_running() -> None:
    instance = settled(engine.start(Approvals(keeps=True).workflow))
    deadline = instance.deadline_at
    clock.shift(timedelta(minutes=30))
    engine.signal(instance, "approved", actor="ann")
    instance = settled(instance)

    assert instance.deadline_at == instance.due_at == deadline
    instance = later(instance, minutes=31)
    assert (instance.status, error_of(instance)) == ("failed", ("Timeout", "approved did not arrive in time"))


def test_early_approvals_are_taken_one_after_the_other() -> None:
    instance = engine.start(Approvals(keeps=True).workflow)
    for name in ("ann", "ben", "cem"):
        engine.signal(instance, "approved", actor=name)
    instance = settled(instance)

    assert (instance.status, instance.context) == ("completed", {"by": ["ann", "ben"]})
    assert mailbox(instance) == [("approved", "consumed"), ("approved", "consumed"), ("approved", "discarded")]


def test_attempts_restart_when_a_step_parks() -> None:
    tried: list[int] = []

    class Parks(Workflow):
        name = "parks"

        @step
        def wait(self, ctx: Context) -> Outcome:
            if ctx.attempt < 3:
                raise ValueError("no")
            return Await("go")

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> Any:
            tried.append(ctx.attempt)
            if ctx.attempt < 3:
                raise ValueError("no")

    instance = settled(engine.start(Parks))
    instance = later(instance, minutes=10)
    instance = later(instance, minutes=10)
    assert (instance.status, instance.attempts, instance.error) == ("awaiting", 0, None)

    engine.signal(instance, "go")
    instance = settled(instance)
    instance = later(instance, minutes=10)
    instance = later(instance, minutes=10)
    assert (instance.status, tried) == ("completed", [1, 2, 3])


def test_a_wait_completes_with_what_it_was_told_before_it_parked() -> None:
    class Says(Workflow):
        name = "says"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go", updates={"asked": True})

    instance = settled(engine.start(Says))
    assert reload(instance).context == {"asked": True}
    engine.signal(instance, "go", {"went": True})

    assert settled(instance).context == {"asked": True, "went": True}
