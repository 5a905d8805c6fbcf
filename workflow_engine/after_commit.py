"""The one door through which anything leaves a transaction: jobs, Django signals and log lines, after commit.

Each engine write has an `Effects` of its own, with one robust hook on the right alias, registered before any user
code runs: a hook of the user's that raises makes Django drop those behind it, and never ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from django.db import transaction

from workflow_engine import signals
from workflow_engine.dispatch import NO_DELAY, wake
from workflow_engine.domain.registry import registry
from workflow_engine.failpoints import failpoint

if TYPE_CHECKING:
    from uuid import UUID

    from workflow_engine.models import WorkflowEvent

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

logger = logging.getLogger("workflow_engine")


class Effects:
    """What one engine write does after it is committed; nothing of it happens if it is not."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.committed = False
        self._jobs: dict[UUID, tuple[str, timedelta]] = {}
        self._events: list[tuple[str, int, WorkflowEvent]] = []
        self._log_lines: list[Callable[[], None]] = []

    def register(self) -> None:
        """Arrange for `run` at the commit of the current transaction (at once if there is none)."""
        transaction.on_commit(self.run, using=self.using, robust=True)

    def wake(self, instance_id: UUID, queue: str, delay: timedelta = NO_DELAY) -> None:
        """Hand the instance to the dispatcher, to be driven after so long."""
        self._jobs[instance_id] = (queue, delay)

    def send(self, workflow_name: str, definition_version: int, event: WorkflowEvent) -> None:
        """Send the event as the Django signal of its name, if there is one."""
        self._events.append((workflow_name, definition_version, event))

    def log(self, level: int, message: str, *args: Any, exc_info: ExcInfo | None = None, **extra: Any) -> None:
        """Write a log line; ids go to `extra`."""
        self._log_lines.append(lambda: logger.log(level, message, *args, exc_info=exc_info, extra=extra))

    def run(self) -> None:
        """Do it all, once: jobs first, so that a slow receiver delays no work."""
        if self.committed:
            return
        self.committed = True
        failpoint("hook.before")
        for instance_id, (queue, delay) in self._jobs.items():
            wake(instance_id, queue=queue, using=self.using, delay=delay)
        for write in self._log_lines:
            write()
        for name, version, event in self._events:
            if (signal := signals.BY_EVENT_KIND.get(event.kind)) is not None:
                signal.send_robust(registry.get(name, version), event=event, instance_id=event.instance_id)
        failpoint("hook.after")
