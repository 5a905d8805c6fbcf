"""Who does the work in the demo: processes of their own, and what a supervisor does for them in a real deployment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import IO, Self

from django.db import connection

from .world import ROOT

COUNT = 2
PATIENCE = 30.0
"""Seconds that a process may take to end when it is asked to."""


class WorkerDiedError(Exception):
    """A process ended, and nobody had asked it to."""


class ServerMissingError(Exception):
    """A server that the workers need does not do what is asked of it.

    Args:
        server: its name.
        where: its address, without a password.
        variable: of the environment, that says so.
        error: what it answered.
    """

    def __init__(self, server: str, where: str, variable: str, error: Exception) -> None:
        said = " ".join(str(error).split()) or type(error).__name__
        super().__init__(
            f"{server} at {where} can't be used: {said}\nStart it, or say in {variable} where one is:"
            " example_project/settings_celery.py has examples."
        )


class Workers(ABC):
    """The processes, which are asked to end at the end of the block.

    Args:
        environment: what they are told besides what this process was told.
    """

    described: str
    """What they are, for the audience."""
    by_hand: str
    """What to run instead of them after the demo."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = os.environ | environment
        self._running: dict[int, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
        self._lock = threading.Lock()

    @classmethod
    @abstractmethod
    def prepare(cls) -> str:
        """See that what they need is there, before anything else; returns where their database is. Raises
        ServerMissingError.
        """

    def __enter__(self) -> Self:
        self._start_all()
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
                    self._kill_all_of(process)
                    process.wait()
                log.close()
            self._running.clear()

    @abstractmethod
    def kill(self, pid: int) -> bool:
        """End one that works as a power failure would, and see that another takes its place. False if it is none."""

    def check(self) -> None:
        """Raises WorkerDiedError, with what the process said last."""
        with self._lock:
            for process, log in self._running.values():
                if process.poll() is not None:
                    log.seek(0)
                    said = log.read().decode(errors="replace").strip()
                    raise WorkerDiedError(f"Worker {process.pid} ended with {process.returncode}. It said:\n{said}")

    @abstractmethod
    def _start_all(self) -> None: ...

    def _kill_all_of(self, process: subprocess.Popen[bytes]) -> None:
        """With the processes that it started, if it starts any."""
        process.kill()

    def _start(self, *arguments: str, own_session: bool = False) -> None:
        # What is tried again is logged, as it should be, but would fill the screen.
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its process
        process = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=own_session,
        )
        self._running[process.pid] = process, log


class EmbeddedWorkers(Workers):
    """Processes of `manage.py workflow_worker`: they need nothing but the database."""

    described = f"{COUNT} processes of manage.py workflow_worker"
    by_hand = "manage.py outside and manage.py workflow_worker in two more terminals"

    @classmethod
    def prepare(cls) -> str:
        return str(connection.settings_dict["NAME"])

    def kill(self, pid: int) -> bool:
        with self._lock:
            if pid not in self._running:
                return False
            process, log = self._running.pop(pid)
            process.kill()
            process.wait()
            log.close()
            self._start_one()
            return True

    def _start_all(self) -> None:
        for _ in range(COUNT):
            self._start_one()

    def _start_one(self) -> None:
        self._start(str(ROOT / "manage.py"), "workflow_worker", "--verbosity", "0")
