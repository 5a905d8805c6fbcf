from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from workflow_engine.inspection.times import both, exact, length, relative

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0 s"),
        (timedelta(milliseconds=12), "12 ms"),
        (timedelta(seconds=1), "1 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(minutes=5), "5 m"),
        (timedelta(minutes=5, seconds=12), "5 m 12 s"),
        (timedelta(hours=6, minutes=21, seconds=59), "6 h 21 m"),
        (timedelta(hours=17), "17 h"),
        (timedelta(days=3, hours=4, minutes=59), "3 d 4 h"),
        (timedelta(days=412), "412 d"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(span: timedelta, text: str) -> None:
    assert length(span) == text


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOW - timedelta(hours=6, minutes=21), "6 h 21 m ago"),
        (NOW + timedelta(hours=17, minutes=39), "in 17 h 39 m"),
        (NOW + timedelta(milliseconds=999), "now"),
        (NOW - timedelta(milliseconds=999), "now"),
    ],
)
def test_a_moment_is_told_from_now(moment: datetime, text: str) -> None:
    assert relative(moment, NOW) == text


def test_an_exact_moment_is_in_the_current_time_zone_and_names_it() -> None:
    with timezone.override("Europe/Berlin"):
        assert exact(NOW) == "2030-01-31 13:00:00 CET"
        assert both(NOW + timedelta(hours=1), NOW) == "in 1 h (2030-01-31 14:00:00 CET)"
