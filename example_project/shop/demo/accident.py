"""The accident of the demo: a worker is killed at the worst moment there is.

The provider has taken the money and nobody has heard of it yet: the answer does not come, and the one process that
waits for it dies. What was done is known outside only.
"""

from __future__ import annotations

import threading
import time

from example_project.shop import calls

from .workers import Workers

EVERY = 0.05


class Accident(threading.Thread):
    """Watches for a worker that waits for an answer in vain, and kills it with SIGKILL. Once."""

    def __init__(self, workers: Workers) -> None:
        super().__init__(name="accident", daemon=True)
        self.victim: int | None = None
        """The process that was killed."""
        self.order = ""
        """The number of the order that it was charging."""
        self._workers = workers
        self._over = threading.Event()

    def run(self) -> None:
        while self.victim is None and not self._over.is_set():
            time.sleep(EVERY)
            try:
                stalled = calls.get("/stalled")["stalled"]
            except (calls.NoAnswerError, calls.UnavailableError):
                continue
            for waiting in stalled:
                if self._workers.kill(int(waiting["client"])):
                    self.victim, self.order = int(waiting["client"]), waiting["reference"]
                    break

    def call_off(self) -> None:
        """It does not happen any more, if it has not."""
        self._over.set()
        self.join()
