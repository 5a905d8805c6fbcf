"""The workflows of the proof. Every handler notes what it does; what each of them must come to is known in advance.

They are known to nobody but the proof: `known()` registers them for as long as a test needs them.
"""

from __future__ import annotations

import os
import signal as signals
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tests.proof.deeds import about, give_way, leased, transactional
from tests.shop.models import Counter
from workflow_engine import Await, Context, Fail, Goto, Outcome, RetryPolicy, Signal, Sleep, Workflow, activity, step
from workflow_engine.domain.registry import registry

BACKOFF = timedelta(seconds=10)
SIX = RetryPolicy(max_attempts=6, initial_delay=BACKOFF, multiplier=1, jitter=False)
ONCE = RetryPolicy(max_attempts=1)
LEASE = timedelta(seconds=60)
WAITS_FOR = timedelta(hours=1)

with registry.isolated():

    class Ladder(Workflow):
        """Three steps, one after the other."""

        name = "proof_ladder"
        retry = SIX

        @step
        def first(self, ctx: Context) -> dict[str, Any]:
            with transactional(ctx, "body", 6) as run:
                return {"first": ctx.visit, "nonce": run.nonce}

        @step
        def middle(self, ctx: Context) -> dict[str, Any]:
            with transactional(ctx, "body", 6) as run:
                return {"middle": ctx.visit, "nonce": run.nonce}

        @step
        def last(self, ctx: Context) -> dict[str, Any]:
            with transactional(ctx, "body", 6) as run:
                return {"last": ctx.visit, "nonce": run.nonce}

    class Waiting(Workflow):
        """Waits for an answer, for an hour; then once more, then it gives up waiting and goes on."""

        name = "proof_waiting"
        retry = SIX

        @step
        def ask(self, ctx: Context) -> Outcome:
            with transactional(ctx, "body", 6):
                return Await("yes", "no", timeout=WAITS_FOR)

        @ask.on_signal
        def answered(self, ctx: Context, signal: Signal) -> Outcome | dict[str, Any]:
            with transactional(ctx, about(signal), 6) as run:
                return {"answer": signal.name, "nonce": run.nonce}

        @ask.on_timeout
        def nobody_answered(self, ctx: Context) -> Outcome | dict[str, Any]:
            with transactional(ctx, "timeout", 6) as run:
                return Goto("ask") if ctx.visit == 1 else {"answer": "none", "nonce": run.nonce}

        @step
        def file(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                return

    class Approvals(Workflow):
        """Wants two approvals in one visit; the handler fails the first time it is called for each."""

        name = "proof_approvals"
        retry = SIX

        @step
        def ask(self, ctx: Context) -> Outcome:
            with transactional(ctx, "body", 6):
                return Await("approved", timeout=WAITS_FOR)

        @ask.on_signal
        def approved(self, ctx: Context, signal: Signal) -> Outcome | dict[str, Any]:
            with transactional(ctx, about(signal), 6):
                if ctx.attempt == 1:
                    raise RuntimeError("not yet")
                approvals = [*ctx.get("approvals", []), signal.data["call"]]
                if len(approvals) == 1:
                    return Await("approved", timeout=ctx.deadline, updates={"approvals": approvals})
                return {"approvals": approvals}

    class Errands(Workflow):
        """Two activities; the first one sends a heartbeat and fails once."""

        name = "proof_errands"
        retry = SIX

        @activity(lease=LEASE)
        def fetch(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6) as run:
                run.beat()
                if ctx.attempt == 1:
                    raise RuntimeError("busy")
                return {"nonce": run.nonce}

        @activity(lease=LEASE)
        def carry(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6) as run:
                return {"nonce": run.nonce}

    class Saga(Workflow):
        """Three things to be undone in three ways, and a last step that fails for good."""

        name = "proof_saga"
        retry = SIX

        @step
        def reserve(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                return

        @reserve.compensation(atomic=True, retry=SIX)
        def release(self, ctx: Context, result: Any) -> None:
            with transactional(ctx, "undo", 6):
                return

        @step
        def book(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                return

        @book.compensation(retry=SIX)
        def unbook(self, ctx: Context, result: Any) -> None:
            with leased(ctx, "undo", 6):
                if ctx.attempt == 1:
                    raise RuntimeError("busy")

        @activity(lease=LEASE)
        def charge(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6, undoable=True) as run:
                return {"nonce": run.nonce}

        @charge.compensation(retry=SIX)
        def refund(self, ctx: Context, result: Any) -> None:
            with leased(ctx, "undo", 6):
                return

        @activity(lease=LEASE)
        def ship(self, ctx: Context) -> Outcome:
            with leased(ctx, "activity", 6, undoable=True) as run:
                run.nothing_done = True
                return Fail("out of stock")

        @ship.compensation(retry=SIX)
        def recall(self, ctx: Context, result: Any) -> None:
            with leased(ctx, "undo", 6):
                return

    class Parked(Saga):
        """The saga, waiting for the go-ahead once the money is there: to be cancelled there."""

        name = "proof_parked"
        retry = SIX
        ship = None  # type: ignore[assignment]
        recall = None  # type: ignore[assignment]

        @step
        def wait(self, ctx: Context) -> Outcome:
            with transactional(ctx, "body", 6):
                return Await("go", timeout=WAITS_FOR)

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> None:
            with transactional(ctx, about(signal), 6):
                return

    class Beside(Workflow):
        """A long activity, with something to be undone before it: whatever happens to the instance meanwhile."""

        name = "proof_beside"
        retry = SIX

        @step
        def reserve(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                return

        @reserve.compensation(atomic=True, retry=SIX)
        def release(self, ctx: Context, result: Any) -> None:
            with transactional(ctx, "undo", 6):
                return

        @activity(lease=LEASE)
        def long(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6, undoable=True) as run:
                give_way(ctx)
                run.beat()
                return {"nonce": run.nonce}

        @long.compensation(retry=SIX)
        def shorten(self, ctx: Context, result: Any) -> None:
            with leased(ctx, "undo", 6):
                return

        @step
        def wait(self, ctx: Context) -> Outcome:
            with transactional(ctx, "body", 6):
                return Await("go", timeout=WAITS_FOR)

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> None:
            with transactional(ctx, about(signal), 6):
                return

    class Stubborn(Beside):
        """The same, with an activity that does not ask whether it still has its lease."""

        name = "proof_stubborn"
        retry = SIX

        def long(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6, undoable=True) as run:
                give_way(ctx)
                return {"nonce": run.nonce}

    class Slow(Workflow):
        """A step in the middle of whose transaction something may happen."""

        name = "proof_slow"
        retry = SIX

        @step
        def first(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                give_way(ctx)

        @step
        def second(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                return

    class OnlyOnce(Workflow):
        """An activity that may never run twice, and its undo."""

        name = "proof_only_once"

        @activity(retry=ONCE, lease=LEASE)
        def pay(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 1, undoable=True) as run:
                return {"nonce": run.nonce}

        @pay.compensation(retry=SIX)
        def pay_back(self, ctx: Context, result: Any) -> None:
            with leased(ctx, "undo", 6):
                return

    class Rounds(Workflow):
        """Three rounds of a loop with a sleep in it, and failures that are tried again."""

        name = "proof_rounds"
        retry = SIX

        @step
        def work(self, ctx: Context) -> dict[str, Any]:
            with transactional(ctx, "body", 6) as run:
                if ctx.attempt == 1 and ctx.visit == 1:
                    raise RuntimeError("busy")
                return {"rounds": ctx.get("rounds", 0) + 1, "nonce": run.nonce}

        @activity(lease=LEASE)
        def call(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6) as run:
                return {"nonce": run.nonce}

        @step
        def rest(self, ctx: Context) -> Outcome:
            with transactional(ctx, "body", 6):
                return Sleep(timedelta(minutes=5))

        @step(goes_to=("work",))
        def again(self, ctx: Context) -> Outcome | dict[str, Any]:
            with transactional(ctx, "body", 6) as run:
                return Goto("work") if ctx["rounds"] < 3 else {"nonce": run.nonce}

    class Repaired(Workflow):
        """Fails until somebody repairs what it needs, and is then retried."""

        name = "proof_repaired"
        retry = ONCE

        @step
        def prepare(self, ctx: Context) -> None:
            with transactional(ctx, "body", 1):
                return

        @step
        def use(self, ctx: Context) -> dict[str, Any]:
            with transactional(ctx, "body", 1) as run:
                if not Counter.objects.filter(name="repaired").exists():
                    raise RuntimeError("broken")
                return {"nonce": run.nonce}

    class Killer(Workflow):
        """A step that kills every process that runs it."""

        name = "proof_killer"
        retry = SIX

        @step
        def fine(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                return

        @step
        def deadly(self, ctx: Context) -> None:
            with transactional(ctx, "body", 6):
                os.kill(os.getpid(), signals.SIGKILL)

    PROGRAMS = (
        Ladder,
        Waiting,
        Approvals,
        Errands,
        Saga,
        Parked,
        Beside,
        Stubborn,
        Slow,
        OnlyOnce,
        Rounds,
        Repaired,
        Killer,
    )


@contextmanager
def known() -> Iterator[None]:
    """Within the block the engine knows these workflows."""
    with registry.isolated():
        for program in PROGRAMS:
            registry.register(program)
        yield
