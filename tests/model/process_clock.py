"""The clock of this process, which need not go with the database's: a frozen machine does not know of the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from workflow_engine import clock


class ProcessClock:
    """What the holder of a lease measures by how long it lasts."""

    def __init__(self) -> None:
        self.behind = timedelta()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within the block the engine reads this one. It goes right at first."""
        self.behind = timedelta()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "time", SimpleNamespace(monotonic=self.read))
            yield

    def read(self) -> float:
        """Seconds, as `time.monotonic()`."""
        return time.monotonic() - self.behind.total_seconds()


process_clock = ProcessClock()
