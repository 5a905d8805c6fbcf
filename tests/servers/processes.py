"""Processes that end with the one that starts them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def start(
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user: str | None = None,
    at_our_end: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a program, whose output is added to `log`.

    Args:
        environment: variables beside this process's own.
        at_our_end: what it is sent if the thread that calls this ends before it (Linux).
    """

    def bind() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, at_our_end)

    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            preexec_fn=bind,  # noqa: PLW1509 - nothing but a system call happens in there
        )


def children(pid: int) -> set[int]:
    """Processes that it forked and that live."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return set()


def send(pid: int, what: signal.Signals) -> bool:
    """Send a signal; whether there was still somebody to get it."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


def lives(pid: int) -> bool:
    """Whether it exists and is no zombie."""
    return state(pid) not in {"", "Z", "X"}


def state(pid: int) -> str:
    """The letter that Linux has for it: T for stopped, Z for dead and not yet waited for; "" if there is none."""
    with suppress(FileNotFoundError, ProcessLookupError):
        # The name, in parentheses, may have blanks in it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
