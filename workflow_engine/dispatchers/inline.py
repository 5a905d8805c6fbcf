"""For shells and small scripts: work is driven at commit, in the process that committed."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, ClassVar

from workflow_engine.dispatch import Dispatcher
from workflow_engine.engine.driving import drive

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID


class _Trampoline(threading.local):
    """What this thread still has to drive; None while it drives nothing."""

    queue: deque[tuple[UUID, str]] | None = None


class InlineDispatcher(Dispatcher):
    """Drives instances one after the other; what a step starts or signals is driven next, never inside it."""

    pushes: ClassVar[bool] = False

    def __init__(self) -> None:
        self._thread = _Trampoline()

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Drive the instance, or put it in line if this thread is driving one already."""
        if self._thread.queue is not None:
            self._thread.queue.append((instance_id, using))
            return
        self._thread.queue = deque([(instance_id, using)])
        try:
            while self._thread.queue:
                next_id, alias = self._thread.queue.popleft()
                drive(next_id, using=alias)
        finally:
            self._thread.queue = None
