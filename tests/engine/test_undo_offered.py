from __future__ import annotations

import pytest

from tests.engine.trip import Trip, one_after_the_other, raising
from tests.support import error_of, later, settled
from workflow_engine import (
    Context,
    Fail,
    Retry,
    engine,
)


def test_an_attempt_that_raised_is_offered_for_undo_with_no_result_because_nobody_knows_what_it_did() -> None:
    trip = Trip()
    trip.book["hotel"] = raising(TimeoutError("no answer"))
    instance = settled(engine.start(trip.workflow))

    assert (instance.status, error_of(instance)) == ("compensated", ("TimeoutError", "no answer"))
    assert trip.undone == [("hotel", None), ("flight", {"flight": "booked"})]


def test_a_failure_that_the_activity_states_leaves_nothing_of_it_to_undo() -> None:
    trip = Trip()
    trip.book["hotel"] = lambda ctx: Fail("full")
    instance = settled(engine.start(trip.workflow))

    assert (instance.status, trip.undone) == ("compensated", [("flight", {"flight": "booked"})])
    assert instance.compensation_stack[1]["state"] == "known_failure"


def test_one_attempt_of_unknown_outcome_is_enough_to_offer_the_visit_for_undo() -> None:
    trip = Trip()
    trip.book["car"] = one_after_the_other(raising(TimeoutError("no answer")), lambda ctx: Fail("refused"))
    instance = settled(engine.start(trip.workflow))
    instance = later(instance, seconds=11)

    assert instance.status == "compensated"
    assert trip.undone[0] == ("car", None)


def test_a_visit_of_which_every_attempt_is_known_to_have_failed_is_not_undone() -> None:
    trip = Trip()
    trip.book["car"] = one_after_the_other(lambda ctx: Retry("busy"), lambda ctx: Fail("refused"))
    instance = settled(engine.start(trip.workflow))
    instance = later(instance, seconds=11)

    assert [name for name, _ in trip.undone] == ["hotel", "flight"]
    assert instance.status == "compensated"


def test_a_lost_attempt_is_of_unknown_outcome_too() -> None:
    trip = Trip()

    def vanish(ctx: Context) -> None:
        raise KeyboardInterrupt

    trip.book["hotel"] = vanish
    instance = engine.start(trip.workflow)
    with pytest.raises(KeyboardInterrupt):
        settled(instance)
    instance = later(instance, seconds=61)

    assert (instance.status, error_of(instance)[0]) == ("compensated", "LeaseExpired")
    assert trip.undone == [("hotel", None), ("flight", {"flight": "booked"})]


def test_a_step_that_failed_left_nothing_to_undo() -> None:
    trip = Trip()
    trip.book["flight"] = raising(ValueError("no seat"))
    instance = settled(engine.start(trip.workflow))

    assert (instance.status, trip.undone, instance.compensation_stack) == ("failed", [], [])
