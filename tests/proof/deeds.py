"""What the handlers of the proof's workflows do: note in the ledger that they run, and leave rows to be counted."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.proof import ledger
from tests.shop.models import Effect
from workflow_engine import Context, Signal


@dataclass
class Run:
    """One run of a handler. `nonce` is its own; `nothing_done` is what it says when it knows that."""

    ctx: Context[Any]
    facts: dict[str, Any]
    nonce: str
    nothing_done: bool = False

    def beat(self) -> None:
        """A heartbeat, noted with the new end of the lease."""
        self.ctx.heartbeat()
        ledger.write("renewed", **self.facts, until=ledger.now() + self.ctx.lease_remaining().total_seconds())


@contextmanager
def transactional(ctx: Context[Any], about: str, limit: int) -> Iterator[Run]:
    """A run inside the engine's transaction: one row, whose note tells which run it was.

    Args:
        ctx: of the handler.
        about: "body", "timeout", "undo", or "signal:" and its number.
        limit: the attempts that the policy allows.
    """
    with _noted(ctx, "undo" if about == "undo" else "handler", about, limit, lease=None) as run:
        Effect.objects.create(
            instance_id=ctx.instance_id, step=ctx.step, visit=ctx.visit, note=f"{about}#{ctx.attempt}"
        )
        yield run


@contextmanager
def leased(ctx: Context[Any], kind: str, limit: int, *, undoable: bool = False) -> Iterator[Run]:
    """A run outside any transaction. `kind`: "activity" or "undo"."""
    lease = ctx.lease_remaining().total_seconds()
    with _noted(ctx, kind, kind, limit, lease=lease, undoable=undoable) as run:
        yield run


_interruption: list[Callable[[], object]] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block `interrupt_with` counts; nothing of it is left afterwards."""
    _interruption.clear()
    try:
        yield
    finally:
        _interruption.clear()


def interrupt_with(work: Callable[[], object]) -> None:
    """Let somebody else do this while a handler that gives way runs its first attempt."""
    _interruption.append(work)


def give_way(ctx: Context[Any]) -> None:
    """The place in a handler where somebody else gets his turn; once, or he would meet himself there."""
    while ctx.attempt == 1 and _interruption:
        _interruption.pop(0)()


def about(signal: Signal) -> str:
    """How the run of a signal's handler is called."""
    return f"signal:{signal.id}"


@contextmanager
def _noted(ctx: Context[Any], kind: str, about: str, limit: int, **more: Any) -> Iterator[Run]:
    nonce = secrets.token_hex(8)
    facts = {
        "kind": kind,
        "about": about,
        "workflow": ctx.workflow,
        "instance": str(ctx.instance_id),
        "step": ctx.step,
        "visit": ctx.visit,
        "attempt": ctx.attempt,
        "nonce": nonce,
    }
    run = Run(ctx, facts, nonce)
    ledger.write("began", **facts, key=ctx.idempotency_key, limit=limit, **{"undoable": False, **more})
    try:
        yield run
    except BaseException:
        ledger.write("ended", **facts, ok=False, nothing_done=run.nothing_done)
        raise
    ledger.write("ended", **facts, ok=True, nothing_done=run.nothing_done)
