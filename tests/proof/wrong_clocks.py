"""A machine whose clock is wrong. The engine does not ask it; a mutant does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from tests.proof import ledger

_error = timedelta()


@contextmanager
def ahead(by: timedelta) -> Iterator[None]:
    """Within the block this machine's clock is so far ahead."""
    global _error  # noqa: PLW0603 - a machine has one clock
    before, _error = _error, by
    try:
        yield
    finally:
        _error = before


def now() -> datetime:
    """What this machine believes."""
    return datetime.fromtimestamp(ledger.now(), UTC) + _error
