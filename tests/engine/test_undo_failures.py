from __future__ import annotations

import pytest

from tests.engine.trip import Trip, failed_after_all, raising
from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import ONCE, error_of, events, kinds, later, settled
from workflow_engine import (
    Await,
    Context,
    InvalidStateError,
    Outcome,
    Workflow,
    engine,
    step,
)
from workflow_engine.testing import reload


def test_an_undo_that_fails_is_tried_again_with_the_policy_of_its_own() -> None:
    trip = Trip()
    trip.undo["hotel"] = lambda ctx: 1 // 0 if ctx.attempt == 1 else None
    instance = failed_after_all(trip)

    assert (instance.status, instance.lease_owner) == ("compensating", "")
    assert [name for name, _ in trip.undone] == ["car", "hotel"]
    (failed,) = events(instance, "compensation_attempt_failed")
    assert (failed.step, failed.visit, failed.attempt, failed.data["error"]["type"]) == (
        "hotel",
        2,
        1,
        "ZeroDivisionError",
    )

    instance = later(instance, seconds=11)

    assert instance.status == "compensated"
    assert [name for name, _ in trip.undone] == ["car", "hotel", "hotel", "flight"]


def test_an_undo_that_can_not_be_done_is_given_up_the_others_go_on_and_the_instance_is_failed() -> None:
    trip = Trip()
    trip.undo["hotel"] = raising(OSError("hotel is closed"))
    instance = failed_after_all(trip)
    instance = later(instance, seconds=11)

    assert (instance.status, error_of(instance)) == ("failed", ("OSError", "hotel is closed"))
    assert [name for name, _ in trip.undone] == ["car", "hotel", "hotel", "flight"]
    assert [entry["undo"] for entry in instance.compensation_stack] == ["done", "failed", "done"]
    assert kinds(instance)[-4:] == [
        "compensation_failed",
        "compensation_started",
        "step_compensated",
        "workflow_failed",
    ]


@pytest.mark.parametrize(("end", "status"), [("fail", "compensated"), ("cancel", "cancelled")])
def test_a_retry_takes_up_the_unfinished_undos_alone_and_leads_where_they_were_to_lead(end: str, status: str) -> None:
    trip = Trip()
    trip.undo["hotel"] = raising(OSError("hotel is closed"))
    instance = settled(engine.start(trip.workflow))
    if end == "fail":
        engine.signal(instance, "fail")
    else:
        engine.cancel(instance)
    settled(instance)
    instance = later(instance, seconds=11)
    assert instance.status == "failed"
    trip.undone.clear()
    del trip.undo["hotel"]

    engine.retry(instance)
    instance = settled(instance)

    assert (instance.status, trip.undone) == (status, [("hotel", {"hotel": "booked"})])
    assert trip.seen["hotel"].attempt == 1


def test_a_lost_undo_is_tried_again() -> None:
    trip = Trip()

    def vanish(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise KeyboardInterrupt

    trip.undo["car"] = vanish
    instance = settled(engine.start(trip.workflow))
    engine.signal(instance, "fail")
    with pytest.raises(KeyboardInterrupt):
        settled(instance)
    instance = reload(instance)
    assert (instance.status, instance.has_lease) == ("compensating", True)

    later(instance, seconds=61 + 300)
    instance = later(instance, seconds=11)

    assert instance.status == "compensated"
    assert [name for name, _ in trip.undone] == ["car", "car", "hotel", "flight"]
    assert events(instance, "compensation_attempt_failed")[0].data["error"]["type"] == "LeaseExpired"


def test_an_atomic_undo_commits_its_writes_with_its_record_once() -> None:
    def take_back(ctx: Context) -> None:
        leave_effect(ctx, f"undone in attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError("not yet")

    trip = Trip(atomic=True)
    trip.book["flight"] = lambda ctx: leave_effect(ctx, "booked")
    trip.undo["flight"] = take_back
    instance = failed_after_all(trip)
    assert [effect.note for effect in Effect.objects.all()] == ["booked"]

    instance = later(instance, seconds=11)

    assert instance.status == "compensated"
    assert [effect.note for effect in Effect.objects.order_by("id")] == ["booked", "undone in attempt 2"]
    assert [event.step for event in events(instance, "compensation_started")] == ["car", "hotel"]


def test_a_retry_of_a_compensated_instance_is_refused() -> None:
    instance = failed_after_all(Trip())

    with pytest.raises(InvalidStateError) as raised:
        engine.retry(instance)

    assert str(raised.value) == (
        f"Can't retry workflow instance {instance.pk}: it is compensated. Only a failed instance can be retried."
    )


def test_a_cancellation_whose_undo_is_repaired_ends_cancelled() -> None:
    broken = [True]

    class Booked(Workflow):
        name = "booked"

        @step
        def book(self, ctx: Context) -> Outcome:
            return Await("travelled")

        @book.compensation(retry=ONCE)
        def release(self, ctx: Context, result: object) -> None:
            if broken:
                raise ValueError("the agency is closed")

    instance = settled(engine.start(Booked))
    engine.cancel(instance)
    assert (settled(instance).status, reload(instance).ends_as) == ("failed", "cancelled")

    broken.clear()
    engine.retry(instance)

    assert (settled(instance).status, reload(instance).ends_as) == ("cancelled", "")
