from __future__ import annotations

from typing import Any

import pytest

from tests.engine.trip import Trip, failed_after_all
from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import ONCE, error_of, events, kinds, later, mailbox, settled
from workflow_engine import (
    Await,
    Complete,
    Context,
    Fail,
    Goto,
    InvalidStateError,
    Outcome,
    Workflow,
    activity,
    engine,
    step,
)


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


def test_an_instance_that_fails_while_it_is_paused_is_not_paused_any_more() -> None:
    class Fragile(Workflow):
        name = "fragile"

        @activity(retry=ONCE)
        def call(self, ctx: Context) -> Outcome:
            engine.pause(ctx.instance_id)
            raise ValueError("down")

    instance = settled(engine.start(Fragile))

    assert (instance.status, instance.paused) == ("failed", False)
