"""Who does the work in the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_engine.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable


class EmbeddedWorker:
    """A worker in this process: `work()` returns when nothing is due any more."""

    def __init__(self, report: Callable[[], None]) -> None:
        self._worker = Worker(report=lambda *_: report())

    def work(self) -> None:
        self._worker.run(burst=True)
