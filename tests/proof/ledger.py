"""The ledger: what steps, senders and the nemesis did, written where no rollback and no kill -9 reaches it.

One line of JSON per entry, appended to a file in one write, so that the order of the lines is the order of what
happened, over all processes. A file and not a table: on SQLite a second connection would wait for the lock that the
step itself is holding.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connections

from workflow_engine import clock

Entry = Mapping[str, Any]

_CLOCKS = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "mysql": "SELECT UNIX_TIMESTAMP(NOW(6))",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
}
"""Seconds since 1970 by the database: an own telling of the time, whatever is done to the engine's."""

_file: Path | None = None

_RECENT = 100_000
"""Bytes at the end of the ledger."""


@contextmanager
def kept_in(path: Path) -> Iterator[None]:
    """Within the block this process and those it forks write their entries into `path`."""
    global _file  # noqa: PLW0603 - handlers find it without being told
    before, _file = _file, path
    try:
        yield
    finally:
        _file = before


def write(what: str, **facts: Any) -> None:
    """Append one entry, dated `at` now."""
    if _file is None:
        return
    entry = {"what": what, "pid": os.getpid(), "at": now(), **facts}
    line = json.dumps(entry, default=str) + "\n"
    handle = os.open(_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def read() -> list[Entry]:
    """Every entry so far, in order."""
    if _file is None or not _file.exists():
        return []
    return [json.loads(line) for line in _file.read_text().splitlines()]


def last_of(process: int) -> Entry | None:
    """The last entry of a process, if it is a recent one."""
    if _file is None or not _file.exists():
        return None
    with _file.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _RECENT, 0))
        lines = file.read().splitlines()[1:]  # the first one is a part of one
    return next((entry for line in reversed(lines) if (entry := json.loads(line))["pid"] == process), None)


def replace(entries: Iterable[Entry]) -> None:
    """Forge the ledger: from now on it says this."""
    if _file is not None:
        _file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def database_time(using: str = "default") -> datetime:
    """The database's time now, with the engine's shift; to the microsecond, on SQLite to the millisecond, rounded up.

    Rounded up, because what was read at the same millisecond may have been read before.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(_CLOCKS[connection.vendor])
        seconds = float(cursor.fetchone()[0])
    return datetime.fromtimestamp(seconds, UTC) + timedelta(seconds=shift(), milliseconds=1)


def now() -> float:
    """Seconds since 1970, by this machine's clock and the engine's shift."""
    return time.time() + shift()


def shift() -> float:
    """How far the test has moved the engine's time on, in seconds."""
    return clock._offset.get().total_seconds()
