"""Workflows that more than one test starts; what only one test needs is defined where it is used."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db.models import F

from tests.shop.models import Counter, Effect
from workflow_engine import Await, Context, Fail, Outcome, RetryPolicy, Signal, Workflow, activity, step

WAITS_FOR = timedelta(hours=1)


class OneStep(Workflow):
    name = "one_step"

    @step
    def only(self, ctx: Context) -> dict[str, Any]:
        return {"done": True}


class WaitForGo(Workflow):
    """Waits without a handler and without an end."""

    name = "wait_for_go"

    @step
    def wait(self, ctx: Context) -> Outcome:
        return Await("go")

    @step
    def after(self, ctx: Context) -> dict[str, Any]:
        return {"went": True}


class Approval(Workflow):
    """Waits for one of two signals, for an hour."""

    name = "approval"

    @step
    def ask(self, ctx: Context) -> Outcome:
        return Await("approved", "refused", timeout=WAITS_FOR)

    @ask.on_signal
    def answered(self, ctx: Context, signal: Signal) -> Outcome | dict[str, Any]:
        return Fail("refused") if signal.name == "refused" else {"by": signal.actor, "data": signal.data}

    @step
    def file(self, ctx: Context) -> None:
        """Nothing: a step behind the wait."""


class CountUp(Workflow):
    """Each step leaves a row and counts one up, so that a run too many or too few shows."""

    name = "count_up"

    @step
    def first(self, ctx: Context) -> None:
        leave_effect(ctx)

    @step
    def second(self, ctx: Context) -> None:
        leave_effect(ctx)

    @step
    def third(self, ctx: Context) -> None:
        leave_effect(ctx)


def leave_effect(ctx: Context, note: str = "") -> None:
    """What a step writes: a row of its own, and one more in the counter of its name."""
    Effect.objects.create(instance_id=ctx.instance_id, step=ctx.step, visit=ctx.visit, note=note)
    Counter.objects.get_or_create(name=ctx.step)
    Counter.objects.filter(name=ctx.step).update(value=F("value") + 1)


class Gated(Workflow):
    """A step and an activity that stay where they are until a file lets them go on; for processes."""

    name = "gated"

    @step
    def inside(self, ctx: Context) -> None:
        leave_effect(ctx)
        pass_gate(ctx)

    @activity(lease=2, retry=RetryPolicy(max_attempts=3, initial_delay=0, jitter=False))
    def outside(self, ctx: Context) -> None:
        pass_gate(ctx)

    @step
    def after(self, ctx: Context) -> None:
        leave_effect(ctx)


class Deadly(Workflow):
    """Its step kills every process that runs it, and leaves a line in a file before."""

    name = "deadly"

    @step
    def kill(self, ctx: Context) -> None:
        with Path(ctx["directory"], "deaths").open("a") as deaths:
            deaths.write(f"{os.getpid()}\n")
        os._exit(1)


def pass_gate(ctx: Context) -> None:
    """Say that the gate of this step is reached, by a file, and wait for another one that opens it."""
    directory = Path(ctx["directory"])
    (directory / f"{ctx.step}-reached").write_text(str(os.getpid()))
    while not (directory / f"{ctx.step}-open").exists():
        time.sleep(0.02)
