"""What may befall a process at any failpoint: it dies, it stands still, or somebody comes in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.db import connection

from tests.model.actions import stand_still
from tests.model.script import Died, script
from workflow_engine import InvalidStateError, engine, failpoints
from workflow_engine.models import WorkflowInstance


def die() -> None:
    """All that this process had in hand stays where it was."""
    script.might_be_dead += 1
    raise Died


def freeze() -> None:
    """Time passes, and this process does not know."""
    stand_still(knowing=False)


def somebody(verb: str, *arguments: str) -> Callable[[], None]:
    """Mail for everybody comes in between, and others look at it."""

    def say() -> None:
        for instance in WorkflowInstance.objects.live():
            with suppress(InvalidStateError):
                getattr(engine, verb)(instance, *arguments)
        script.let_others_work()

    return say


MISHAPS: Mapping[str, Callable[[], None]] = {
    "die": die,
    "stand still": stand_still,
    "freeze": freeze,
    "others look": script.let_others_work,
    "somebody signals": somebody("signal", "go"),
    "somebody cancels": somebody("cancel"),
}
ANYWHERE = frozenset({"die", "stand still", "freeze"})
"""Others come in between only where nothing is locked."""


@dataclass(frozen=True)
class Mishap:
    """What befalls a process at the n-th failpoint that it passes, of those where it can."""

    what: str = "none"
    at: int = 0

    @contextmanager
    def befalls(self) -> Iterator[None]:
        """Within the block, once. Who died has left the block in silence."""
        passed = 0

        def reached(name: str) -> None:
            nonlocal passed
            if self.what not in ANYWHERE and connection.in_atomic_block:
                return
            passed += 1
            if passed == self.at:
                with failpoints.installed(lambda name: None):
                    MISHAPS[self.what]()

        with suppress(Died), failpoints.installed(reached):
            yield
