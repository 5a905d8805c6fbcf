"""Several worker processes on one machine, started and watched over by this one.

They are spawned, not forked: a forked child would share its parent's database connection, and SQLite forbids that.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from workflow_engine.worker import child

_RESTART_PAUSE = 1.0


class Processes:
    """Keeps `count` workers running; one that dies is replaced.

    Args:
        count: of processes.
        using: the database alias.
        burst: let each end when nothing is due, and don't replace those.
        verbosity: of each; 0 is silent.
        say: told what happens to the processes, in words.
    """

    def __init__(self, count: int, using: str, *, burst: bool, say: Callable[[str], None], verbosity: int = 1) -> None:
        self._count, self._using, self._burst, self._say, self._verbosity = count, using, burst, say, verbosity
        self._stopping = threading.Event()
        self._context = get_context("spawn")

    def stop(self) -> None:
        """Ask all of them to end after their current step. Safe to call from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Return when all have ended."""
        running = [self._start() for _ in range(self._count)]
        try:
            while running:
                if self._stopping.wait(0.1):
                    break
                running = [alive for process in running if (alive := self._watch(process)) is not None]
        finally:
            self._end(running)

    def _start(self) -> BaseProcess:
        process = self._context.Process(target=child.work, args=(self._using, self._burst, self._verbosity))
        process.start()
        self._say(f"worker process {process.pid} started")
        return process

    def _watch(self, process: BaseProcess) -> BaseProcess | None:
        """The process, its replacement if it died, or None if it ended as it should."""
        if process.is_alive():
            return process
        if process.exitcode == 0:
            self._say(f"worker process {process.pid} ended")
            return None
        self._say(f"worker process {process.pid} died ({_reason(process.exitcode)}); another one takes its place")
        time.sleep(_RESTART_PAUSE)
        return self._start()

    def _end(self, running: list[BaseProcess]) -> None:
        for process in running:
            if process.is_alive():
                process.terminate()
        for process in running:
            process.join()
            self._say(f"worker process {process.pid} ended")


def _reason(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return signal.Signals(-exitcode).name
    return f"exit code {exitcode}"
