"""What a step, or one of its handlers, tells the engine to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from workflow_engine.domain.durations import Duration, as_timedelta, shown
from workflow_engine.exceptions import InvalidOutcomeError, UnknownOutcomeError

Updates = Mapping[str, Any] | None
"""Keys to merge into the context."""


@dataclass(frozen=True, slots=True)
class Complete:
    """The step is done: merge `updates` into the context, keep `result` for `ctx.results`, go to the next step."""

    updates: Updates = None
    result: Any = None

    def __post_init__(self) -> None:
        _check_updates(self.updates)


@dataclass(frozen=True, slots=True, init=False)
class Await:
    """Park until one of the signals arrives, or until `timeout`: a duration from now, or an aware datetime."""

    names: tuple[str, ...]
    timeout: timedelta | datetime | None
    updates: Updates

    def __init__(self, *names: str, timeout: Duration | datetime | None = None, updates: Updates = None) -> None:
        for name in names:
            _check_text(name, "A signal name in Await", 'Name the signals one by one: Await("paid", "refused").')
        if not names:
            raise InvalidOutcomeError('Await names no signal. Name at least one: Await("paid").')
        _check_updates(updates)
        _fill(
            self,
            names=tuple(dict.fromkeys(names)),
            timeout=None if timeout is None else _moment(timeout, "Await(timeout=…)"),
            updates=updates,
        )


@dataclass(frozen=True, slots=True, init=False)
class Sleep:
    """Park for a duration, or until an aware datetime, then complete the step."""

    until_or_for: timedelta | datetime
    updates: Updates

    def __init__(self, until_or_for: Duration | datetime, updates: Updates = None) -> None:
        _check_updates(updates)
        _fill(self, until_or_for=_moment(until_or_for, "Sleep(…)"), updates=updates)


@dataclass(frozen=True, slots=True)
class Goto:
    """Complete the step and enter another one, given by its key: a new visit, also of the same step."""

    step: str
    updates: Updates = None

    def __post_init__(self) -> None:
        _check_text(self.step, "The step in Goto", 'Give its key: Goto("charge").')
        _check_updates(self.updates)


@dataclass(frozen=True, slots=True)
class Finish:
    """End the whole workflow as completed, whatever steps would follow. `result` is the instance's result."""

    result: Any = None
    updates: Updates = None

    def __post_init__(self) -> None:
        _check_updates(self.updates)


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """The attempt failed; try again `after` (default: the retry policy's delay) while the policy allows another."""

    reason: str
    after: timedelta | None

    def __init__(self, reason: str, after: Duration | None = None) -> None:
        _check_text(reason, "The reason in Retry", 'Say why: Retry("gateway busy").')
        _fill(self, reason=reason, after=None if after is None else as_timedelta(after, "Retry(after=…)"))


@dataclass(frozen=True, slots=True)
class Fail:
    """The workflow failed for good: no retry; what was done is undone."""

    reason: str

    def __post_init__(self) -> None:
        _check_text(self.reason, "The reason in Fail", 'Say why: Fail("card declined").')


Outcome = Complete | Await | Sleep | Goto | Finish | Retry | Fail
Returned = Outcome | Mapping[str, Any] | None
"""What a handler may return: None or a mapping stands for Complete."""


def classify(value: object) -> Outcome:
    """The outcome that a handler's return value stands for. Raises UnknownOutcomeError."""
    if value is None:
        return Complete()
    if isinstance(value, Outcome):
        return value
    if isinstance(value, Mapping):
        return Complete(updates=value)
    raise UnknownOutcomeError(value)


def _fill(outcome: object, **values: object) -> None:
    """Set the fields of a frozen instance whose constructor takes other types than it keeps."""
    for name, value in values.items():
        object.__setattr__(outcome, name, value)


def _check_text(value: object, what: str, remedy: str) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidOutcomeError(f"{what} is {shown(value)}. {remedy}")


def _check_updates(updates: object) -> None:
    if updates is not None and not isinstance(updates, Mapping):
        raise InvalidOutcomeError(f"`updates` is {shown(updates)}. Give a dict of what to merge into the context.")


def _moment(value: Duration | datetime, what: str) -> timedelta | datetime:
    if not isinstance(value, datetime):
        return as_timedelta(value, what)
    if value.utcoffset() is None:
        raise InvalidOutcomeError(
            f"{what} is a naive datetime, which names no moment. Make it aware, with"
            " django.utils.timezone.make_aware(…), or give a duration."
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOutcomeError(f"{what} is {value}, which no database can store. Give an earlier moment.") from None
