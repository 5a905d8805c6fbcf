"""One clock: the database's. Python clocks of several machines differ, and a lease can't be fair by them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, TextField

_EXPRESSIONS = {
    # The time of the statement, not of the transaction's start: a verb may have waited long for its lock.
    "postgresql": "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')",
    # Django's Now() is the session's local time here, which is wrong by hours where the server is off UTC.
    "mysql": "DATE_FORMAT(UTC_TIMESTAMP(6), '%%Y-%%m-%%dT%%H:%%i:%%s.%%f')",
    "sqlite": "strftime('%%Y-%%m-%%dT%%H:%%M:%%f', 'now')",
}

_offset: ContextVar[timedelta] = ContextVar("workflow_engine_clock_offset", default=timedelta())


class DatabaseNow(Func):
    """The database's clock as an aware datetime in UTC, in any query; whatever TIME_ZONE the connection has.

    Precision: microseconds, on SQLite milliseconds.
    """

    output_field = TextField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> tuple[str, tuple[()]]:
        """The expression in the connection's dialect, as ISO 8601 text."""
        return _EXPRESSIONS[connection.vendor], ()

    @property
    def convert_value(self) -> Any:
        """Text to datetime, with the offset that a test may have set."""
        return lambda value, expression, connection: parse(value)


def now(using: str) -> datetime:
    """The database's time, read now, outside any other query. Units: aware, UTC."""
    connection = connections[using]
    with connection.cursor() as cursor:
        # Without parameters no driver unescapes the doubled percent signs.
        cursor.execute(f"SELECT {_EXPRESSIONS[connection.vendor]}".replace("%%", "%"))
        return parse(cursor.fetchone()[0])


def monotonic() -> float:
    """Seconds of this process's monotonic clock, which measures how long something took; a test moves it on too."""
    return time.monotonic() + _offset.get().total_seconds()


@contextmanager
def shifted(by: timedelta) -> Iterator[None]:
    """Within the block the engine's time is `by` further on. For tests; blocks add up."""
    token = _offset.set(_offset.get() + by)
    try:
        yield
    finally:
        _offset.reset(token)


def shift(by: timedelta) -> None:
    """Move the engine's time on by `by` until `reset_shift()`. For tests."""
    _offset.set(_offset.get() + by)


def reset_shift() -> None:
    """Back to the database's own time."""
    _offset.set(timedelta())


def parse(text: str) -> datetime:
    """What `DatabaseNow` gives in raw SQL, as a datetime, with the offset that a test may have set."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC) + _offset.get()
