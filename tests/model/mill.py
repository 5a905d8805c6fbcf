"""The workflow that the state machine drives: it does what it is told, step by step, and leaves a row each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.model.actions import ACTIONS
from tests.model.script import script
from tests.shop.models import Effect
from workflow_engine import Await, Complete, Context, Goto, RetryPolicy, Signal, Sleep, Workflow, activity, step

LIMITS = {"prepare": 2, "call": 2, "wait": 2, "nap": 3, "last": 1}
"""The attempts that each step may take."""


UNDONE_INSIDE = "wait"
"""The step whose undo is committed together with its record."""
WITHOUT_A_SIGNAL_HANDLER = frozenset({"prepare", "last"})


def _policy(step: str) -> RetryPolicy:
    return RetryPolicy(max_attempts=LIMITS[step], initial_delay=10, jitter=False)


def act(ctx: Context, source: str, natural: Callable[[], Any]) -> Any:
    """Leave a row, and do what is next."""
    Effect.objects.create(instance_id=ctx.instance_id, step=ctx.step, visit=ctx.visit, note=source)
    with script.running(ctx, source):
        action = script.next(undo=False)
        return ACTIONS[action](ctx) if action != "natural" else natural()


def undo(ctx: Context) -> None:
    """Do what is next for an undo, and leave a row if that is committed together with it."""
    if ctx.lease is None:
        Effect.objects.create(instance_id=ctx.instance_id, step=ctx.step, visit=ctx.visit, note="undo")
    with script.running(ctx, "undo"):
        action = script.next(undo=True)
        if action != "natural":
            ACTIONS[action](ctx)


class Mill(Workflow):
    """A step, an activity, a wait, a sleep and a last step; the first three can be undone."""

    name = "mill"

    @step(retry=_policy("prepare"))
    def prepare(self, ctx: Context) -> Any:
        return act(ctx, "body", lambda: {"prepared": True})

    @prepare.compensation(retry=_policy("prepare"))
    def unprepare(self, ctx: Context, result: Any) -> None:
        undo(ctx)

    @activity(retry=_policy("call"), lease=60, timeout=120)
    def call(self, ctx: Context) -> Any:
        return act(ctx, "call", lambda: {"called": ctx.idempotency_key})

    @call.compensation(retry=_policy("call"))
    def call_back(self, ctx: Context, result: Any) -> None:
        undo(ctx)

    @call.on_signal
    def call_answered(self, ctx: Context, signal: Signal) -> Any:
        return act(ctx, "signal", lambda: {signal.name: signal.data})

    @call.on_timeout
    def call_late(self, ctx: Context) -> Any:
        return act(ctx, "timeout", Complete)

    @step(retry=_policy("wait"))
    def wait(self, ctx: Context) -> Any:
        return act(ctx, "body", lambda: Await("go", "stop", timeout=3600))

    @wait.on_signal
    def answered(self, ctx: Context, signal: Signal) -> Any:
        return act(ctx, "signal", lambda: {signal.name: signal.data})

    @wait.on_timeout
    def late(self, ctx: Context) -> Any:
        return act(ctx, "timeout", lambda: Goto("nap"))

    @wait.compensation(retry=_policy("wait"), atomic=True)
    def unwait(self, ctx: Context, result: Any) -> None:
        undo(ctx)

    @step(retry=_policy("nap"))
    def nap(self, ctx: Context) -> Any:
        return act(ctx, "body", lambda: Sleep(600))

    @nap.on_signal
    def nap_answered(self, ctx: Context, signal: Signal) -> Any:
        return act(ctx, "signal", lambda: {signal.name: signal.data})

    @step(retry=_policy("last"))
    def last(self, ctx: Context) -> Any:
        return act(ctx, "body", lambda: Complete(result="done"))
