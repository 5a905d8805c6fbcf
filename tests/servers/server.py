"""What all servers have in common: start, stop, kill, restart, and that nothing is left of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeVar

from tests.servers import processes

HOST = "127.0.0.1"
_PATIENCE = 90.0
"""Seconds. None of them takes so long, unless something is wrong."""
_PAUSE = 0.05


class ServerMissingError(Exception):
    """A server is not installed; the text says what to install."""


class ServerTroubleError(Exception):
    """A server did not start or did not end; the text has the end of its log."""


class Server(ABC):
    """One server, in a folder of its own.

    Args:
        folder: for its data and its log; emptied and removed by `private`.
    """

    title: ClassVar[str]
    packages: ClassVar[str]
    """What to install on Debian and Ubuntu."""

    user: str | None = None
    stops_at: ClassVar[signal.Signals] = signal.SIGTERM
    at_our_end: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = processes.free_port()
        self.log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Fill the empty folder, once."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What runs in the foreground until it is told to end."""

    @abstractmethod
    def ask(self) -> None:
        """Connect and get an answer.

        Raises:
            Exception: it does not answer (yet).
        """

    def environment(self) -> dict[str, str]:
        """Variables of the process, beside this one's."""
        return {}

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = processes.start(
            self.command(),
            self.log,
            environment=self.environment(),
            folder=self.folder,
            user=self.user,
            at_our_end=self.at_our_end,
        )
        end = time.monotonic() + _PATIENCE
        while (trouble := self._trouble()) is not None:
            if self._process.poll() is not None or time.monotonic() > end:
                raise self._wrong(f"did not start: {trouble}")
            time.sleep(_PAUSE)

    def stop(self) -> None:
        """Let it end in an orderly way; nothing happens if it does not run."""
        self._end(self.stops_at)

    def kill(self) -> None:
        """End it as a power failure of the machine would, but for what the operating system has been given to write."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def run(self, command: Sequence[str]) -> None:
        """Run a program that prepares the folder, as the server's user."""
        process = processes.start(command, self.log, environment=self.environment(), folder=self.folder, user=self.user)
        if process.wait(_PATIENCE):
            raise self._wrong(f"{command[0]} failed")

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        family = processes.children(self._process.pid)
        processes.send(self._process.pid, how)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise self._wrong("did not end") from error
        self._process = None
        end = time.monotonic() + _PATIENCE
        while family := {pid for pid in family if processes.lives(pid)}:
            for pid in family if how == signal.SIGKILL else ():
                processes.send(pid, how)
            if time.monotonic() > end:
                raise self._wrong(f"left {family} behind")
            time.sleep(_PAUSE)

    def _trouble(self) -> Exception | None:
        try:
            self.ask()
        except Exception as error:  # noqa: BLE001 - each driver has its own
            return error
        return None

    def _wrong(self, what: str) -> ServerTroubleError:
        log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
        return ServerTroubleError(f"A private {self.title} {what}\n{log}")


S = TypeVar("S", bound=Server)


@contextmanager
def private(kind: type[S]) -> Iterator[S]:
    """A server that runs within the block; afterwards there is nothing left of it.

    Raises:
        ServerMissingError: it is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="workflow_engine_", ignore_cleanup_errors=True) as folder:
        server = kind(Path(folder))
        if server.user is not None:
            shutil.chown(folder, server.user, server.user)
        try:
            server.prepare()
            server.start()
            yield server
        finally:
            server.kill()


def program(kind: type[Server], name: str, *folders: str) -> str:
    """Where a program of the server is: on PATH or in one of the folders.

    Raises:
        ServerMissingError: it is nowhere.
    """
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        raise ServerMissingError(
            f"{kind.title} is not installed ({name} is missing): on Debian and Ubuntu, sudo apt install {kind.packages}"
        )
    return found
