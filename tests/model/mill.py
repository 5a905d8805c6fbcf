"""The workflow that the state machine drives: it does what it is told, step by step, and leaves a row each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from django.db import IntegrityError

from tests.shop.models import Counter, Effect
from workflow_engine import (
    Await,
    Complete,
    Context,
    Fail,
    Finish,
    Goto,
    Retry,
    RetryPolicy,
    Signal,
    Sleep,
    Workflow,
    activity,
    engine,
    step,
)

LIMITS = {"prepare": 2, "call": 2, "wait": 2, "nap": 3, "last": 1}
"""The attempts that each step may take."""


def _policy(step: str) -> RetryPolicy:
    return RetryPolicy(max_attempts=LIMITS[step], initial_delay=10, jitter=False)


class Died(BaseException):
    """The process was killed here: nothing of the engine's or the user's gets to see it."""


class Script:
    """What the next handlers do, one after the other; when it is used up, each does what is natural for it.

    Handlers of undos take theirs from `undos`.
    """

    def __init__(self) -> None:
        self.forward: list[str] = []
        self.undos: list[str] = []
        self.deaths: dict[Any, int] = {}

    def set(self, forward: Sequence[str] = (), undos: Sequence[str] = ()) -> None:
        self.forward, self.undos = list(forward), list(undos)

    def act(self, ctx: Context, source: str, natural: Callable[[], Any]) -> Any:
        """Leave a row, and do what is next."""
        Effect.objects.create(instance_id=ctx.instance_id, step=ctx.step, visit=ctx.visit, note=source)
        action = self.forward.pop(0) if self.forward else "natural"
        return ACTIONS[action](ctx) if action != "natural" else natural()

    def undo(self, ctx: Context) -> None:
        if self.undos:
            ACTIONS[self.undos.pop(0)](ctx)


script = Script()


def _raise(ctx: Context) -> None:
    raise ValueError("told to")


def _exit(ctx: Context) -> None:
    raise SystemExit(1)


def _die(ctx: Context) -> None:
    script.deaths[ctx.instance_id] = script.deaths.get(ctx.instance_id, 0) + 1
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
}
UNDO_ACTIONS = ("raise", "exit", "die")


class Mill(Workflow):
    """A step, an activity, a wait, a sleep and a last step; the first three can be undone."""

    name = "mill"

    @step(retry=_policy("prepare"))
    def prepare(self, ctx: Context) -> Any:
        return script.act(ctx, "body", lambda: {"prepared": True})

    @prepare.compensation(retry=_policy("prepare"))
    def unprepare(self, ctx: Context, result: Any) -> None:
        script.undo(ctx)

    @activity(retry=_policy("call"), lease=60, timeout=120)
    def call(self, ctx: Context) -> Any:
        return script.act(ctx, "call", lambda: {"called": ctx.idempotency_key})

    @call.compensation(retry=_policy("call"))
    def call_back(self, ctx: Context, result: Any) -> None:
        script.undo(ctx)

    @call.on_signal
    def call_answered(self, ctx: Context, signal: Signal) -> Any:
        return script.act(ctx, "signal", lambda: {signal.name: signal.data})

    @call.on_timeout
    def call_late(self, ctx: Context) -> Any:
        return script.act(ctx, "timeout", Complete)

    @step(retry=_policy("wait"))
    def wait(self, ctx: Context) -> Any:
        return script.act(ctx, "body", lambda: Await("go", "stop", timeout=3600))

    @wait.on_signal
    def answered(self, ctx: Context, signal: Signal) -> Any:
        return script.act(ctx, "signal", lambda: {signal.name: signal.data})

    @wait.on_timeout
    def late(self, ctx: Context) -> Any:
        return script.act(ctx, "timeout", lambda: Goto("nap"))

    @wait.compensation(retry=_policy("wait"), atomic=True)
    def unwait(self, ctx: Context, result: Any) -> None:
        script.undo(ctx)

    @step(retry=_policy("nap"))
    def nap(self, ctx: Context) -> Any:
        return script.act(ctx, "body", lambda: Sleep(600))

    @nap.on_signal
    def nap_answered(self, ctx: Context, signal: Signal) -> Any:
        return script.act(ctx, "signal", lambda: {signal.name: signal.data})

    @step(retry=_policy("last"))
    def last(self, ctx: Context) -> Any:
        return script.act(ctx, "body", lambda: Complete(result="done"))
