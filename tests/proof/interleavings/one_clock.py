"""One clock for all threads: what the engine's shift of time is to one of them, it is to the others too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from workflow_engine import clock


class _Shared:
    """Stands in for the context variable, which every thread has a value of its own of."""

    def __init__(self, value: timedelta) -> None:
        self._value = value

    def get(self) -> timedelta:
        return self._value

    def set(self, value: timedelta) -> timedelta:
        before, self._value = self._value, value
        return before

    def reset(self, value: timedelta) -> None:
        self._value = value


@contextmanager
def one_clock() -> Iterator[None]:
    """Within the block a shift of time counts in every thread at once."""
    own = clock._offset
    clock._offset = _Shared(own.get())  # type: ignore[assignment]
    try:
        yield
    finally:
        clock._offset = own
