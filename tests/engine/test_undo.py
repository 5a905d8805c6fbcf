from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import ONCE, TWICE, error_of, events, kinds, later, mailbox, settled
from workflow_engine import (
    Await,
    Complete,
    Context,
    Fail,
    Goto,
    InvalidStateError,
    Outcome,
    Retry,
    Signal,
    Workflow,
    activity,
    engine,
    step,
)
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload

Call = Callable[[Context], Any]


class Trip:
    """Books a flight (a step), a hotel and a car (activities), then waits for "go"; everything can be undone.

    `book` and `undo` decide by step what is returned or raised; `undone` notes each undo that was called.
    """

    def __init__(self, *, atomic: bool = False) -> None:
        self.book: dict[str, Call] = {}
        self.undo: dict[str, Call] = {}
        self.undone: list[tuple[str, Any]] = []
        self.keys: dict[str, str] = {}
        self.seen: dict[str, Context] = {}
        trip = self

        class BookTrip(Workflow):
            name = "trip"

            @step(retry=ONCE)
            def flight(self, ctx: Context) -> Any:
                return trip._book(ctx)

            @activity(retry=ONCE)
            def hotel(self, ctx: Context) -> Any:
                return trip._book(ctx)

            @activity(retry=TWICE)
            def car(self, ctx: Context) -> Any:
                return trip._book(ctx)

            @step
            def wait(self, ctx: Context) -> Outcome:
                return Await("go", "fail")

            @wait.on_signal
            def answered(self, ctx: Context, signal: Signal) -> Outcome | None:
                return Fail("called off") if signal.name == "fail" else None

            @flight.compensation(retry=TWICE, atomic=atomic)
            def cancel_flight(self, ctx: Context, result: Any) -> Any:
                return trip._undo(ctx, result)

            @hotel.compensation(retry=TWICE)
            def cancel_hotel(self, ctx: Context, result: Any) -> Any:
                return trip._undo(ctx, result)

            @car.compensation(retry=TWICE)
            def cancel_car(self, ctx: Context, result: Any) -> Any:
                return trip._undo(ctx, result)

        self.workflow = BookTrip

    def _book(self, ctx: Context) -> Any:
        self.keys[ctx.step] = ctx.idempotency_key
        return self.book[ctx.step](ctx) if ctx.step in self.book else {ctx.step: "booked"}

    def _undo(self, ctx: Context, result: Any) -> Any:
        self.undone.append((ctx.step, result))
        self.seen[ctx.step] = ctx
        return self.undo[ctx.step](ctx) if ctx.step in self.undo else None


def raising(error: Exception) -> Call:
    def call(ctx: Context) -> Any:
        raise error

    return call


def one_after_the_other(*calls: Call) -> Call:
    """Calls the first function the first time, then the second …"""
    left = list(calls)

    def call(ctx: Context) -> Any:
        return left.pop(0)(ctx)

    return call


def failed_after_all(trip: Trip) -> WorkflowInstance:
    instance = settled(engine.start(trip.workflow))
    engine.signal(instance, "fail")
    return settled(instance)


def test_what_was_done_is_undone_in_reverse_order_with_its_results() -> None:
    trip = Trip()
    instance = failed_after_all(trip)

    assert (instance.status, error_of(instance), instance.ends_as) == ("compensated", ("Fail", "called off"), "")
    assert trip.undone == [("car", {"car": "booked"}), ("hotel", {"hotel": "booked"}), ("flight", {"flight": "booked"})]
    assert [(entry["step"], entry["undo"]) for entry in instance.compensation_stack] == [
        ("flight", "done"),
        ("hotel", "done"),
        ("car", "done"),
    ]
    assert kinds(instance)[-9:] == [
        "step_failed",
        "workflow_compensating",
        *["compensation_started", "step_compensated"] * 3,
        "workflow_compensated",
    ]
    assert mailbox(instance) == [("fail", "consumed")]


def test_an_undo_gets_its_own_key_and_the_key_of_what_it_undoes() -> None:
    trip = Trip()
    failed_after_all(trip)

    for name, ctx in trip.seen.items():
        assert ctx.forward_idempotency_key == trip.keys[name]
        assert ctx.idempotency_key != trip.keys[name]
    assert [(trip.seen[name].visit, trip.seen[name].attempt) for name in ("flight", "hotel", "car")] == [
        (1, 1),
        (2, 1),
        (3, 1),
    ]
    assert dict(trip.seen["car"]) == {"flight": "booked", "hotel": "booked", "car": "booked"}


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


def test_a_step_that_parked_is_undone_even_if_it_never_completed() -> None:
    undone: list[Any] = []

    class Parks(Workflow):
        name = "parks"

        @step
        def ask(self, ctx: Context) -> Outcome:
            leave_effect(ctx)
            return Await("go", timeout=60)

        @ask.compensation
        def take_back(self, ctx: Context, result: Any) -> None:
            undone.append(result)
            Effect.objects.all().delete()

    instance = settled(engine.start(Parks))
    instance = later(instance, seconds=61)

    assert (instance.status, undone, Effect.objects.count()) == ("compensated", [None], 0)


def test_every_visit_of_a_loop_is_undone_with_its_own_result() -> None:
    undone: list[tuple[int, Any]] = []

    class Loops(Workflow):
        name = "loops"

        @step
        def book(self, ctx: Context) -> Outcome:
            return Complete({"n": ctx.get("n", 0) + 1}, result=ctx.visit * 10)

        @book.compensation
        def cancel(self, ctx: Context, result: Any) -> None:
            undone.append((ctx.visit, result))

        @step
        def again(self, ctx: Context) -> Outcome:
            return Goto("book") if ctx["n"] < 3 else Fail("enough")

    settled(engine.start(Loops))

    assert undone == [(5, 50), (3, 30), (1, 10)]


def test_a_cancelled_instance_is_undone_and_ends_cancelled() -> None:
    trip = Trip()
    instance = settled(engine.start(trip.workflow))
    engine.cancel(instance, reason="ill", actor="zoë")
    instance = settled(instance)

    assert (instance.status, instance.error) == ("cancelled", None)
    assert [name for name, _ in trip.undone] == ["car", "hotel", "flight"]
    (compensating,) = events(instance, "workflow_compensating")
    assert (compensating.actor, compensating.data["ends_as"], compensating.data["reason"]) == (
        "zoë",
        "cancelled",
        "ill",
    )


def test_a_cancel_may_leave_everything_as_it_is() -> None:
    trip = Trip()
    instance = settled(engine.start(trip.workflow))
    engine.cancel(instance, compensate=False)

    assert (settled(instance).status, trip.undone) == ("cancelled", [])


def test_an_instance_that_is_being_undone_can_not_be_cancelled() -> None:
    trip = Trip()
    refusals: list[str] = []

    def cancel_again(ctx: Context) -> None:
        with pytest.raises(InvalidStateError) as raised:
            engine.cancel(ctx.instance_id)
        refusals.append(str(raised.value))

    trip.undo["car"] = cancel_again
    instance = failed_after_all(trip)

    assert instance.status == "compensated"
    assert refusals == [
        f"Can't cancel workflow instance {instance.pk}: it is compensating. Its steps are already being undone."
    ]


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


@pytest.mark.parametrize("atomic", [True, False])
def test_an_undo_may_do_what_it_likes_with_its_result(atomic: bool) -> None:
    class Keeps(Workflow):
        name = "keeps"

        @step
        def book(self, ctx: Context) -> Outcome:
            return Complete(result={"lines": [1, 2]})

        @book.compensation(atomic=atomic)
        def cancel(self, ctx: Context, result: Any) -> None:
            result["lines"].clear()

        @step
        def fail(self, ctx: Context) -> Outcome:
            return Fail("no")

    instance = settled(engine.start(Keeps))

    assert (instance.status, instance.compensation_stack[0]["result"]) == ("compensated", {"lines": [1, 2]})


def test_what_an_undo_returns_means_nothing() -> None:
    trip = Trip()
    trip.undo["car"] = lambda ctx: {"any": "thing"}

    assert failed_after_all(trip).status == "compensated"


def test_signals_that_come_during_the_undo_are_discarded_at_its_end() -> None:
    trip = Trip()

    def send(ctx: Context) -> None:
        engine.signal(ctx.instance_id, "go")

    trip.undo["car"] = send
    instance = failed_after_all(trip)

    assert (instance.status, mailbox(instance)) == ("compensated", [("fail", "consumed"), ("go", "discarded")])


def test_a_pause_during_the_undo_holds_it_until_it_is_resumed() -> None:
    trip = Trip()

    def hold(ctx: Context) -> None:
        engine.pause(ctx.instance_id)
        engine.advance(ctx.instance_id)  # as a person's command does

    trip.undo["hotel"] = hold
    instance = failed_after_all(trip)
    assert (instance.status, instance.paused) == ("compensating", True)
    assert [name for name, _ in trip.undone] == ["car", "hotel"]

    engine.resume(instance)

    assert settled(instance).status == "compensated"


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


def test_an_instance_that_fails_while_it_is_paused_is_not_paused_any_more() -> None:
    class Fragile(Workflow):
        name = "fragile"

        @activity(retry=ONCE)
        def call(self, ctx: Context) -> Outcome:
            engine.pause(ctx.instance_id)
            raise ValueError("down")

    instance = settled(engine.start(Fragile))

    assert (instance.status, instance.paused) == ("failed", False)
