"""What a handler of the mill can be told to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection

from tests.model.process_clock import process_clock
from tests.model.script import Died, script
from tests.shop.models import Counter
from workflow_engine import Await, Complete, Context, Fail, Finish, Goto, Retry, Sleep, clock, engine

LONGER_THAN_A_LEASE = timedelta(seconds=61)


def _raise(ctx: Context) -> None:
    raise ValueError("told to")


def _exit(ctx: Context) -> None:
    raise SystemExit(1)


def _die(ctx: Context) -> None:
    script.might_be_dead += 1
    raise Died


def _swallow(ctx: Context) -> None:
    Counter.objects.get_or_create(name="taken")
    with suppress(IntegrityError):
        Counter.objects.create(name="taken")


def _word(verb: str, *arguments: Any) -> Callable[[Context], Any]:
    """Say something to the own instance, and complete."""

    def say(ctx: Context) -> Complete:
        getattr(engine, verb)(ctx.instance_id, *arguments)
        return Complete({"said": verb})

    return say


def stand_still(*, knowing: bool = True) -> None:
    """Until every lease is over; others do their work meanwhile, if this process has nothing locked.

    Args:
        knowing: its own clock tells this process afterwards that time has passed.
    """
    script.might_be_dead += 1
    clock.shift(LONGER_THAN_A_LEASE)
    if not knowing:
        process_clock.behind += LONGER_THAN_A_LEASE
    if not connection.in_atomic_block:
        script.let_others_work()


def _dawdle(ctx: Context) -> Complete:
    stand_still()
    return Complete({"dawdled": ctx.attempt})


def _freeze(ctx: Context) -> Complete:
    stand_still(knowing=False)
    return Complete({"frozen": ctx.attempt})


def _dawdle_and_fail(ctx: Context) -> None:
    stand_still()
    raise ValueError("told to, late")


def _beat(ctx: Context) -> Complete:
    """Longer than a lease lasts, but never silent for that long."""
    for _ in range(2):
        clock.shift(timedelta(seconds=45))
        _heartbeat(ctx)
    return Complete({"beaten": ctx.attempt})


def _beat_too_late(ctx: Context) -> Complete:
    stand_still(knowing=False)
    _heartbeat(ctx)
    return Complete({"beaten": ctx.attempt})


def _heartbeat(ctx: Context) -> None:
    if ctx.lease is not None:
        ctx.heartbeat()
        script.renewed()


def _clock_leaps(ctx: Context) -> Complete:
    """The clock of this process alone jumps, beyond the end of the lease."""
    process_clock.behind -= LONGER_THAN_A_LEASE
    return Complete({"leapt": ctx.attempt})


def _cancelled_beside(ctx: Context) -> Complete:
    """Somebody cancels it, and others look at that."""
    engine.cancel(ctx.instance_id)
    if not connection.in_atomic_block:
        script.let_others_work()
    return Complete({"cancelled": ctx.attempt})


ACTIONS: dict[str, Callable[[Context], Any]] = {
    "complete": lambda ctx: Complete({"n": ctx.get("n", 0) + 1}, result=ctx.visit),
    "raise": _raise,
    "exit": _exit,
    "die": _die,
    "swallow": _swallow,
    "retry": lambda ctx: Retry("told to"),
    "retry at once": lambda ctx: Retry("told to", after=0),
    "fail": lambda ctx: Fail("told to"),
    "finish": lambda ctx: Finish({"told": "to"}),
    "three": lambda ctx: 3,
    "nan": lambda ctx: {"n": float("nan")},
    "to first": lambda ctx: Goto("prepare"),
    "to wait": lambda ctx: Goto("wait"),
    "to last": lambda ctx: Goto("last"),
    "to nowhere": lambda ctx: Goto("nowhere"),
    "await": lambda ctx: Await("go", "stop", timeout=3600),
    "await for ever": lambda ctx: Await("go", "stop"),
    "await the rest": lambda ctx: Await("stop", "go", timeout=ctx.deadline),
    "await the past": lambda ctx: Await("go", timeout=0),
    "sleep": lambda ctx: Sleep(600, updates={"slept": True}),
    "sleep no time": lambda ctx: Sleep(0),
    "signal": _word("signal", "go", {"from": "itself"}),
    "cancel": _word("cancel"),
    "pause": _word("pause"),
    "dawdle": _dawdle,
    "dawdle and fail": _dawdle_and_fail,
    "freeze": _freeze,
    "beat": _beat,
    "beat too late": _beat_too_late,
    "clock leaps": _clock_leaps,
    "cancelled beside": _cancelled_beside,
}
UNDO_ACTIONS = ("raise", "exit", "die", "dawdle", "freeze", "beat too late", "clock leaps")
