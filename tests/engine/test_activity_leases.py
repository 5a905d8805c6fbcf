from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.engine.calls import calling, claimed
from tests.support import ONCE, error_of, events, kinds, later, mailbox, seconds_until, settled
from workflow_engine import (
    Context,
    Fail,
    LeaseLost,
    Workflow,
    clock,
    engine,
    step,
)
from workflow_engine.domain.registry import registry
from workflow_engine.engine import Answer
from workflow_engine.testing import drain, reload


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


def test_a_cancel_takes_effect_although_the_attempt_that_it_waits_for_was_the_last_one_and_is_lost() -> None:
    instance = engine.start(calling(lambda ctx: None, retry=ONCE))
    claimed(instance)
    engine.cancel(instance)
    settled(instance)

    instance = later(instance, seconds=61)

    assert instance.status == "cancelled"
    assert kinds(instance)[-2:] == ["step_failed", "workflow_cancelled"]


def test_a_cancel_takes_effect_although_the_attempt_that_it_waits_for_fails_for_good() -> None:
    def call(ctx: Context) -> Fail:
        engine.cancel(ctx.instance_id)
        drain()
        return Fail("no")

    instance = settled(engine.start(calling(call)))

    assert instance.status == "cancelled"
    assert kinds(instance)[-2:] == ["step_failed", "workflow_cancelled"]


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
