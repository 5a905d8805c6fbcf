"""A workflow of which everything can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support import ONCE, TWICE, settled
from workflow_engine import (
    Await,
    Context,
    Fail,
    Outcome,
    Signal,
    Workflow,
    activity,
    engine,
    step,
)
from workflow_engine.models import WorkflowInstance

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
