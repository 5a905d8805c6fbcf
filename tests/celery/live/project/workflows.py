"""What the live tests run. Every effect is a row, so that what happened twice is seen; its note is the process."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.celery.live import cells
from tests.shop.models import Effect
from workflow_engine import (
    Await,
    Context,
    Finish,
    Outcome,
    RetryPolicy,
    Signal,
    Sleep,
    Workflow,
    activity,
    clock,
    step,
)

PACKING = f"{cells.queue()}_packing"


def note(ctx: Context) -> None:
    Effect.objects.create(instance_id=ctx.instance_id, step=ctx.step, visit=ctx.visit, note=str(os.getpid()))


class Order(Workflow):
    """Everything an order needs: a step, a call, a signal, another queue, a nap."""

    name = "live_order"

    @step
    def reserve(self, ctx: Context) -> None:
        note(ctx)

    @activity(retry=RetryPolicy(max_attempts=3, initial_delay=0.2), timeout=20, lease=3)
    def charge(self, ctx: Context) -> dict[str, Any]:
        note(ctx)
        if ctx.attempt == 1:
            raise ConnectionError("the gateway hung up")
        return {"charged": ctx.idempotency_key}

    @step
    def await_payment(self, ctx: Context) -> Outcome:
        return Await("paid", timeout=timedelta(minutes=5))

    @await_payment.on_signal
    def paid(self, ctx: Context, signal: Signal) -> dict[str, Any]:
        note(ctx)
        return {"payment": signal.data}

    @step(queue=PACKING)
    def pack(self, ctx: Context) -> None:
        note(ctx)

    @step
    def rest(self, ctx: Context) -> Outcome:
        return Sleep(2.5)

    @step
    def ship(self, ctx: Context) -> Outcome:
        note(ctx)
        return Finish({"shipped": True})


class Dies(Workflow):
    """The first process that comes here waits to be killed; it tells its number in the file `ctx["file"]`."""

    name = "live_dies"

    @step
    def before(self, ctx: Context) -> None:
        note(ctx)

    @step
    def in_a_step(self, ctx: Context) -> None:
        note(ctx)
        if ctx["where"] == "step":
            _wait_to_be_killed(Path(ctx["file"]))

    @activity(timeout=60, lease=3)
    def in_an_activity(self, ctx: Context) -> None:
        if ctx["where"] == "activity":
            _wait_to_be_killed(Path(ctx["file"]))
        note(ctx)


class Poison(Workflow):
    name = "live_poison"

    @step
    def kill(self, ctx: Context) -> None:
        os.kill(os.getpid(), 9)


class Quick(Workflow):
    name = "live_quick"

    @step
    def only(self, ctx: Context) -> None:
        note(ctx)


class Timer(Workflow):
    """Sleeps until `ctx.input["due"]`; the effect's note is the moment at which it woke."""

    name = "live_timer"

    @step
    def sleep(self, ctx: Context) -> Outcome:
        return Sleep(datetime.fromisoformat(ctx.input["due"]))

    @step
    def wake(self, ctx: Context) -> None:
        Effect.objects.create(instance_id=ctx.instance_id, step=ctx.step, note=clock.now("default").isoformat())


ALL: tuple[type[Workflow[Any]], ...] = (Order, Dies, Poison, Quick, Timer)


def _wait_to_be_killed(file: Path) -> None:
    if file.exists():
        return
    file.write_text(str(os.getpid()))
    time.sleep(600)
