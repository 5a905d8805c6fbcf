"""What the handlers of the mill are told to do, and what is noted of their runs, where no rollback reaches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from workflow_engine import Context, clock
from workflow_engine.models import WorkflowInstance


class Died(BaseException):
    """The process was killed here: nothing of the engine's or the user's gets to see it."""


@dataclass
class Run:
    """A handler that runs under a lease. `until`: the end of the lease, or None if it is lost already."""

    ctx: Context
    until: datetime | None = None

    def look(self) -> None:
        """What the row says of the lease."""
        row = WorkflowInstance.objects.get(pk=self.ctx.instance_id)
        lease: Any = self.ctx.lease
        self.until = row.due_at if lease.holds(row) else None


class Script:
    """What the next handlers do, one after the other; when it is used up, each does what is natural for it.

    Handlers of undos take theirs from `undos`. `others` is what other processes do while this one stands still.
    """

    def __init__(self) -> None:
        self.others: Callable[[], None] = lambda: None
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.set()
        self.might_be_dead = 0
        """How often a process died, or stood still for so long that others had to think so."""
        self.begun: Counter[tuple[UUID, str, int]] = Counter()
        """Runs under a lease, by instance, kind and visit."""
        self.wrong: list[str] = []
        """What should not have happened; an exception would be the handler's failure."""
        self._running: list[Run] = []

    def set(self, forward: Sequence[str] = (), undos: Sequence[str] = ()) -> None:
        """What is next."""
        self.forward, self.undos = list(forward), list(undos)

    def next(self, *, undo: bool) -> str:
        """Take the next action."""
        actions = self.undos if undo else self.forward
        return actions.pop(0) if actions else "natural"

    def let_others_work(self) -> None:
        """Their handlers do what is natural."""
        forward, undos = self.forward, self.undos
        self.set()
        try:
            self.others()
        finally:
            self.set(forward, undos)

    @contextmanager
    def running(self, ctx: Context, kind: str) -> Iterator[None]:
        """A handler runs. Invariant 6: nobody else has a live lease on its instance meanwhile."""
        now = clock.now("default")
        for other in self._running:
            if other.ctx.instance_id == ctx.instance_id and other.until is not None and other.until > now:
                self.wrong.append(f"{kind} of {ctx.step} began at {now}, beside a lease until {other.until}")
        if ctx.lease is None:
            yield
            return
        self.begun[ctx.instance_id, kind, ctx.visit] += 1
        run = Run(ctx)
        run.look()
        self._running.append(run)
        try:
            yield
        finally:
            self._running.pop()

    def renewed(self) -> None:
        """The innermost run has had its lease renewed."""
        self._running[-1].look()


script = Script()
