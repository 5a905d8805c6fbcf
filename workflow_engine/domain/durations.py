"""Lengths of time: a `timedelta` or a number of seconds, everywhere the same."""

from __future__ import annotations

from datetime import timedelta

from workflow_engine.exceptions import DefinitionError, InvalidOutcomeError

Duration = timedelta | int | float
"""A length of time; a bare number is in seconds."""

LONGEST = timedelta(days=365_000)
"""About a thousand years: added to any sensible date it still is a date, in Python and in every database."""

_READABLE = 50

_REMEDY = "Give a timedelta or a number of seconds, from 0 up to 1000 years."


def as_timedelta(value: Duration, what: str) -> timedelta:
    """The duration `what`, as given in a handler. Raises InvalidOutcomeError, which names `what`."""
    duration = _parsed(value)
    if duration is None:
        raise InvalidOutcomeError(f"{what} is {shown(value)}. {_REMEDY}")
    return duration


def declared_timedelta(value: Duration, what: str, where: str) -> timedelta:
    """The duration `what`, as declared on a class: raises DefinitionError instead."""
    duration = _parsed(value)
    if duration is None:
        raise DefinitionError(where, f"{what} is {shown(value)}", _REMEDY)
    return duration


def shown(value: object) -> str:
    """A wrong value in an error message. Only of plain values the repr: a queryset's would ask the database."""
    if value is None or isinstance(value, bool | int | float | timedelta):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _READABLE else f"{value[:_READABLE]}…")
    return f"a {type(value).__name__}"


def _parsed(value: object) -> timedelta | None:
    """The duration, or None where there is none in `value`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            value = timedelta(seconds=value)
        except (ValueError, OverflowError):  # NaN, infinity, or more than a timedelta can hold
            return None
    return value if isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST else None
