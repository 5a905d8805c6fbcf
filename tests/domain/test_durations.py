from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from workflow_engine.domain.durations import LONGEST, as_timedelta, declared_timedelta
from workflow_engine.exceptions import DefinitionError, InvalidOutcomeError

REMEDY = "Give a timedelta or a number of seconds, from 0 up to 1000 years."


class Awkward:
    def __repr__(self) -> str:
        raise AssertionError("an error message must not run a value's repr: a queryset's asks the database")


@pytest.mark.parametrize(
    ("value", "duration"),
    [
        (timedelta(hours=1), timedelta(hours=1)),
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        (0, timedelta(0)),
        (timedelta(days=365_000), LONGEST),
    ],
)
def test_a_duration_is_a_timedelta_or_seconds(value: Any, duration: timedelta) -> None:
    assert as_timedelta(value, "timeout") == duration


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "True"),
        (None, "None"),
        ("60", "'60'"),
        ("6" * 60, "'" + "6" * 50 + "…'"),
        (-1, "-1"),
        (timedelta(seconds=-1), "datetime.timedelta(days=-1, seconds=86399)"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e300, "1e+300"),
        (timedelta(days=365_001), "datetime.timedelta(days=365001)"),
        ([60], "a list"),
        (Awkward(), "a Awkward"),
    ],
)
def test_what_is_no_duration_is_refused_by_name(value: Any, shown: str) -> None:
    with pytest.raises(InvalidOutcomeError) as refused:
        as_timedelta(value, "Retry(after=…)")
    assert str(refused.value) == f"Retry(after=…) is {shown}. {REMEDY}"


def test_a_declared_duration_is_refused_with_the_place_of_the_declaration() -> None:
    assert declared_timedelta(5, "timeout", "Order.charge") == timedelta(seconds=5)
    with pytest.raises(DefinitionError) as refused:
        declared_timedelta(-5, "timeout", "Order.charge")
    assert str(refused.value) == f"Order.charge: timeout is -5. {REMEDY}"
