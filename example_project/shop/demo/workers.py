"""Who does the work in the demo: worker processes, and what a supervisor does for them in a real deployment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from types import TracebackType
from typing import IO, Self

from .world import ROOT

COUNT = 2
PATIENCE = 30.0
"""Seconds that a worker may take to end when it is asked to."""


class WorkerDiedError(Exception):
    """A worker ended, and nobody had asked it to."""


class Workers:
    """Processes of `manage.py workflow_worker`, asked to end at the end of the block.

    Args:
        environment: what they are told besides what this process was told.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = os.environ | environment
        self._running: dict[int, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        for _ in range(COUNT):
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            for process, _ in self._running.values():
                process.terminate()
            for process, log in self._running.values():
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                log.close()
            self._running.clear()

    def kill(self, pid: int) -> bool:
        """End one of them as a power failure would, and start another in its place. False if it is none of them."""
        with self._lock:
            if pid not in self._running:
                return False
            process, log = self._running.pop(pid)
            process.kill()
            process.wait()
            log.close()
            self._start()
            return True

    def check(self) -> None:
        """Raises WorkerDiedError, with what the worker said last."""
        with self._lock:
            for process, log in self._running.values():
                if process.poll() is not None:
                    log.seek(0)
                    said = log.read().decode(errors="replace").strip()
                    raise WorkerDiedError(f"Worker {process.pid} ended with {process.returncode}. It said:\n{said}")

    def _start(self) -> None:
        command = [sys.executable, str(ROOT / "manage.py"), "workflow_worker", "--verbosity", "0"]
        # What is tried again is logged, as it should be, but would fill the screen.
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its worker
        process = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
            command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self._running[process.pid] = process, log
