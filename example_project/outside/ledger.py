"""The books of the provider and the carrier, and how they do a thing once however often they are asked."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, operation TEXT NOT NULL, request TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS charges (
    id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, reference TEXT NOT NULL, amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL, refund TEXT
);
CREATE TABLE IF NOT EXISTS parcels (
    tracking_number TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, reference TEXT NOT NULL, status TEXT NOT NULL,
    looks_to_label INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS counts (what TEXT PRIMARY KEY, times INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status of HTTP, and a body that becomes JSON."""

    status: int
    body: dict[str, Any]


NOT_FOUND = Answer(404, {"error": "not_found"})


class Ledger:
    """A SQLite file. One thread at a time: this world is small.

    Args:
        path: of the file; what it holds already is kept.
    """

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.RLock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.row_factory = sqlite3.Row
        self._database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {TABLES}")

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def once(self, operation: str, key: str, request: dict[str, Any], carry_out: Callable[[], Answer]) -> Answer:
        """Carry a request out, unless its key is known: then give the answer that was given first, also if it was no.

        The key is stored in the transaction of the effect. So there is never one without the other, and of two
        requests that come at the same time one waits and then finds the other's answer.
        """
        text = json.dumps(request, sort_keys=True)
        with self.transaction():
            known = self.row("SELECT * FROM answers WHERE key = ?", key)
            if known is None:
                answer = carry_out()
                values = (key, operation, text, answer.status, json.dumps(answer.body))
                self.write("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", *values)
                return answer
            if (known["operation"], known["request"]) != (operation, text):
                return Answer(409, {"error": "key_used_for_another_request"})
            self._count(f"{operation} repeated")
            return Answer(known["status"], json.loads(known["body"]))

    def count(self, what: str) -> None:
        with self.transaction():
            self._count(what)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def row(self, statement: str, *values: object) -> dict[str, Any] | None:
        return next(iter(self.rows(statement, *values)), None)

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        with self._lock:
            return [dict(row) for row in self._database.execute(statement, values)]

    def write(self, statement: str, *values: object) -> None:
        with self._lock:
            self._database.execute(statement, values)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for whoever wants to hold their own books against it."""
        return {
            "charges": self.rows("SELECT id, reference, amount_minor, currency, refund FROM charges ORDER BY id"),
            "parcels": self.rows("SELECT tracking_number, reference, status FROM parcels ORDER BY tracking_number"),
            "counts": {row["what"]: row["times"] for row in self.rows("SELECT * FROM counts ORDER BY what")},
        }

    def _count(self, what: str) -> None:
        self.write("INSERT INTO counts VALUES (?, 1) ON CONFLICT (what) DO UPDATE SET times = times + 1", what)


def name_for(prefix: str, key: str) -> str:
    """An identifier that follows from the key, so that runs are alike."""
    return f"{prefix}_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
