from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import ONCE, TWICE, data_of, error_of, events, kinds, later, mailbox, seconds_until, settled
from workflow_engine import (
    Await,
    Context,
    Fail,
    LeaseLost,
    Outcome,
    Retry,
    RetryPolicy,
    Signal,
    Sleep,
    Workflow,
    activity,
    clock,
    engine,
    step,
)
from workflow_engine.domain.registry import registry
from workflow_engine.engine import Answer, advancing
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.turns import Mode
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain, reload

Call = Callable[[Context], Any]


def calling(call: Call, *, retry: RetryPolicy = TWICE, timeout: float = 300, lease: float = 60) -> type[Workflow[Any]]:
    """A workflow that calls `call` as its activity, and then has one more step."""

    class Calls(Workflow):
        name = "calls"

        @activity(retry=retry, timeout=timeout, lease=lease)
        def call(self, ctx: Context) -> Any:
            return call(ctx)

        @call.on_signal
        def answered(self, ctx: Context, signal: Signal) -> Any:
            return {"answer": signal.data}

        @step
        def after(self, ctx: Context) -> None: ...

    return Calls


def claimed(instance: WorkflowInstance) -> Callable[[], Any]:
    """An attempt whose claim is committed and whose handler has not run: what a worker holds in its hands."""
    advanced = run_outermost("default", lambda: advancing.take_turn(instance.pk, "default", Mode(hold=True)))
    assert advanced.outside is not None
    return advanced.outside


def test_an_activity_runs_outside_any_transaction_with_its_attempt_committed() -> None:
    seen: list[WorkflowInstance] = []

    def call(ctx: Context) -> dict[str, Any]:
        seen.append(reload(ctx.instance_id))
        return {"id": 1}

    instance = settled(engine.start(calling(call)))

    (during,) = seen
    assert (during.status, during.attempts, during.lease_token, during.has_lease) == ("in_progress", 1, 1, True)
    assert during.due_at == during.poll_at
    assert (instance.status, instance.context, instance.lease_owner) == ("completed", {"id": 1}, "")
    assert kinds(instance) == [
        "workflow_started",
        "step_started",
        "step_completed",
        "step_completed",
        "workflow_completed",
    ]


@pytest.mark.django_db(transaction=True)
def test_an_activity_has_no_transaction_around_it() -> None:
    seen: list[bool] = []
    instance = settled(engine.start(calling(lambda ctx: seen.append(connection.in_atomic_block))))

    assert (instance.status, seen) == ("completed", [False])


def test_an_activity_gets_its_lease_and_its_deadline() -> None:
    seen: list[tuple[Any, ...]] = []

    def call(ctx: Context) -> None:
        seen.append((ctx.attempt, ctx.deadline - ctx.now if ctx.deadline else None, ctx.lease_remaining()))

    settled(engine.start(calling(call, timeout=200, lease=30)))

    ((attempt, until, remaining),) = seen
    assert (attempt, until) == (1, timedelta(seconds=200))
    assert timedelta(seconds=20) < remaining <= timedelta(seconds=30)


@pytest.mark.parametrize(("timeout", "lease", "seconds"), [(300, 60, 60), (20, 60, 20)])
def test_a_lease_lasts_no_longer_than_the_attempt_may(timeout: float, lease: float, seconds: int) -> None:
    instance = engine.start(calling(lambda ctx: None, timeout=timeout, lease=lease))
    claimed(instance)

    assert seconds_until(reload(instance).due_at) in range(seconds - 10, seconds + 1)


def test_the_idempotency_key_is_one_per_visit_and_another_for_other_visits() -> None:
    keys: list[str] = []

    def call(ctx: Context) -> Outcome | None:
        keys.append(ctx.idempotency_key)
        return Retry("again", after=0) if ctx.attempt == 1 else None

    workflow = calling(call)
    for _ in range(2):
        settled(engine.start(workflow))

    assert len(keys[0]) == 64
    assert keys[0] == keys[1] != keys[2] == keys[3]


@pytest.mark.parametrize("failure", [ValueError("down"), Retry("down"), SystemExit("down")])
def test_an_attempt_that_fails_is_tried_again(failure: Any) -> None:
    def call(ctx: Context) -> Any:
        if ctx.attempt == 2:
            return {"ok": True}
        if isinstance(failure, BaseException):
            raise failure
        return failure

    instance = settled(engine.start(calling(call)))
    assert (instance.status, instance.attempts, instance.lease_owner) == ("in_progress", 1, "")
    assert error_of(instance)[1] == "down"
    assert seconds_until(instance.due_at) in range(5, 11)

    instance = later(instance, seconds=11)

    assert (instance.status, instance.lease_token, instance.error) == ("completed", 2, None)
    assert [event.attempt for event in events(instance, "step_started")] == [1, 2]


@pytest.mark.parametrize("answer", [Fail("declined"), {"a": {1, 2}}, 3, object()])
def test_what_is_final_ends_the_activity_at_once(answer: Any) -> None:
    calls: list[int] = []

    def call(ctx: Context) -> Any:
        calls.append(ctx.attempt)
        return answer

    instance = settled(engine.start(calling(call)))

    assert (instance.status, instance.lease_owner, calls) == ("failed", "", [1])


def test_a_result_that_can_not_be_stored_fails_the_attempt_with_its_key_path() -> None:
    instance = settled(engine.start(calling(lambda ctx: {"charge": {"at": float("nan")}}, retry=ONCE)))

    assert (instance.status, error_of(instance)) == (
        "failed",
        ("NotSerializableError", "updates at charge.at: nan is not a JSON number; store None or a string"),
    )


def test_an_activity_may_await_and_sleep() -> None:
    instance = settled(engine.start(calling(lambda ctx: Await("done", timeout=3600))))
    assert (instance.status, instance.lease_owner, instance.awaiting_signals) == ("awaiting", "", ["done"])
    engine.signal(instance, "done", 5)
    assert settled(instance).context == {"answer": 5}

    napping = settled(engine.start(calling(lambda ctx: Sleep(60))))
    assert napping.status == "sleeping"
    assert later(napping, seconds=60).status == "completed"


def test_a_signal_that_comes_while_the_activity_runs_is_taken_when_it_parks() -> None:
    def call(ctx: Context) -> Outcome:
        engine.signal(ctx.instance_id, "done", "fast")
        return Await("done")

    instance = settled(engine.start(calling(call)))

    assert (instance.status, instance.context) == ("completed", {"answer": "fast"})


# --- leases ---------------------------------------------------------------------------


def test_a_lease_that_ran_out_is_a_lost_attempt_whose_result_is_not_known() -> None:
    instance = engine.start(calling(lambda ctx: {"ok": ctx.attempt}))
    claimed(instance)
    assert later(instance, seconds=50).attempts == 1

    instance = later(instance, seconds=11)

    assert (instance.status, instance.attempts, instance.lease_owner) == ("in_progress", 1, "")
    assert error_of(instance) == (
        "LeaseExpired",
        "attempt 1 did not report within its lease; what it did is not known",
    )
    assert later(instance, seconds=11).context == {"ok": 2}


def test_with_one_attempt_an_activity_never_runs_twice_whatever_is_lost() -> None:
    calls: list[int] = []
    instance = engine.start(calling(lambda ctx: calls.append(ctx.attempt), retry=ONCE))
    claimed(instance)

    instance = later(instance, hours=1)

    assert (instance.status, error_of(instance)[0], calls) == ("failed", "LeaseExpired", [])


def test_a_stale_worker_writes_nothing() -> None:
    instance = engine.start(calling(lambda ctx: {"by": ctx.attempt}))
    stale = claimed(instance)
    later(instance, seconds=61)
    instance = later(instance, seconds=11)
    assert instance.context == {"by": 2}
    before = (kinds(instance), instance.version)

    assert stale().answer == Answer.LOCKED

    instance = reload(instance)
    assert (kinds(instance), instance.version) == before
    assert instance.context == {"by": 2}


def test_a_worker_that_comes_back_between_the_loss_and_the_next_attempt_writes_nothing() -> None:
    instance = engine.start(calling(lambda ctx: {"by": ctx.attempt}))
    stale = claimed(instance)
    instance = later(instance, seconds=61)

    assert stale().answer == Answer.LOCKED
    assert reload(instance).version == instance.version


def test_a_worker_whose_lease_ran_out_records_nothing_even_if_nobody_noticed() -> None:
    instance = engine.start(calling(lambda ctx: {"by": ctx.attempt}))
    stale = claimed(instance)
    clock.shift(timedelta(seconds=61))

    assert stale().answer == Answer.LOCKED
    assert kinds(reload(instance)) == ["workflow_started", "step_started"]


def test_a_heartbeat_renews_the_lease_without_a_trace_in_the_history() -> None:
    def call(ctx: Context) -> dict[str, Any]:
        for _ in range(4):
            clock.shift(timedelta(seconds=40))
            ctx.heartbeat()
        row = reload(ctx.instance_id)
        assert seconds_until(row.due_at) in range(50, 61)
        assert row.poll_at == row.due_at
        return {"ok": True}

    instance = settled(engine.start(calling(call)))

    assert (instance.status, instance.error) == ("completed", None)
    assert kinds(instance)[:3] == ["workflow_started", "step_started", "step_completed"]


def test_a_heartbeat_of_a_lease_that_is_lost_stops_the_handler() -> None:
    lost: list[str] = []

    def call(ctx: Context) -> None:
        clock.shift(timedelta(seconds=61))
        try:
            ctx.heartbeat()
        except LeaseLost as error:
            lost.append(str(error))
            raise

    instance = engine.start(calling(call))
    engine.advance(instance)

    assert lost == [
        f"The lease of 'call' on workflow instance {instance.pk} is lost: it ran out before this heartbeat."
    ]
    assert kinds(reload(instance)) == ["workflow_started", "step_started"]


def test_a_heartbeat_in_a_step_says_that_only_activities_have_leases() -> None:
    class Beats(Workflow):
        name = "beats"

        @step
        def beat(self, ctx: Context) -> None:
            ctx.heartbeat()

    instance = settled(engine.start(Beats))

    assert instance.status == "failed"
    assert error_of(instance)[1] == (
        "Step 'beat' called ctx.heartbeat(), but only an activity has a lease. Declare it with @activity, or leave the"
        " call out: a @step runs inside one transaction."
    )


def test_the_end_of_a_lease_is_read_from_the_row_and_not_from_the_code() -> None:
    instance = engine.start(calling(lambda ctx: None, lease=60))
    claimed(instance)
    with registry.isolated():
        calling(lambda ctx: None, lease=100_000, timeout=100_000)
        instance = later(instance, seconds=61)

    assert error_of(instance)[0] == "LeaseExpired"


# --- requests beside a running activity ---------------------------------------------------------


def test_a_cancel_waits_until_the_activity_is_recorded() -> None:
    def call(ctx: Context) -> dict[str, Any]:
        engine.cancel(ctx.instance_id, reason="enough", actor="zoë")
        drain()
        row = reload(ctx.instance_id)
        assert (row.status, row.has_lease) == ("in_progress", True)
        assert row.cancel_requested == {"compensate": True, "reason": "enough", "actor": "zoë"}
        return {"ok": True}

    instance = engine.start(calling(call))
    engine.advance(instance)
    instance = reload(instance)

    assert (instance.status, instance.context, instance.cancel_requested) == ("cancelled", {"ok": True}, None)
    assert kinds(instance) == [
        "workflow_started",
        "step_started",
        "cancel_requested",
        "step_completed",
        "workflow_cancelled",
    ]
    assert (events(instance)[-1].actor, events(instance)[-1].data["reason"]) == ("zoë", "enough")


def test_a_heartbeat_refuses_once_a_cancellation_is_requested_and_the_attempt_may_still_report() -> None:
    lost: list[str] = []

    def call(ctx: Context) -> dict[str, Any]:
        engine.cancel(ctx.instance_id)
        drain()
        with pytest.raises(LeaseLost) as raised:
            ctx.heartbeat()
        lost.append(raised.value.reason)
        return {"reached": "half"}

    instance = engine.start(calling(call))
    engine.advance(instance)

    assert lost == ["the instance is to be cancelled"]
    assert (reload(instance).status, reload(instance).context) == ("cancelled", {"reached": "half"})


def test_a_cancel_takes_effect_when_the_lease_ends_unreported_and_leaves_no_mail_behind() -> None:
    instance = engine.start(calling(lambda ctx: None))
    engine.signal(instance, "early")
    drained = claimed(instance)
    engine.cancel(instance)
    instance = settled(instance)
    assert (instance.status, mailbox(instance)) == ("in_progress", [("early", "buffered"), ("cancel", "consumed")])

    instance = later(instance, seconds=61)

    assert instance.status == "cancelled"
    assert mailbox(instance) == [("early", "discarded"), ("cancel", "consumed")]
    assert drained().answer == Answer.LOCKED


def test_a_cancel_that_is_denied_because_one_was_requested_says_so() -> None:
    instance = engine.start(calling(lambda ctx: None))
    claimed(instance)
    for _ in range(2):
        engine.cancel(instance)
    instance = settled(instance)

    (denied,) = events(instance, "request_denied")
    assert denied.data == {"request": "cancel", "reason": "A cancellation was already requested."}
    later(instance, seconds=61)


def test_a_pause_lets_the_running_activity_be_recorded_and_starts_nothing_new() -> None:
    def call(ctx: Context) -> dict[str, Any]:
        engine.pause(ctx.instance_id)
        drain()
        return {"ok": True}

    instance = settled(engine.start(calling(call)))

    assert (instance.paused, instance.current_step, instance.context) == (True, "after", {"ok": True})
    engine.resume(instance)
    assert settled(instance).status == "completed"


def test_a_cancel_of_a_paused_instance_whose_activity_was_lost_is_carried_out() -> None:
    instance = engine.start(calling(lambda ctx: None))
    claimed(instance)
    engine.pause(instance)
    settled(instance)
    engine.cancel(instance)
    settled(instance)

    assert later(instance, seconds=61).status == "cancelled"


def test_an_activity_that_writes_commits_by_itself_and_keeps_what_it_wrote_when_it_fails() -> None:
    def call(ctx: Context) -> None:
        leave_effect(ctx)
        raise ValueError("too late")

    settled(engine.start(calling(call, retry=ONCE)))

    assert Effect.objects.count() == 1


def test_an_events_duration_is_that_of_the_users_code() -> None:
    instance = settled(engine.start(calling(lambda ctx: None)))

    started, completed = events(instance)[1:3]
    assert started.duration is None
    assert completed.duration is not None
    assert (data_of(started, "set")["attempts"], completed.attempt) == (1, 1)
