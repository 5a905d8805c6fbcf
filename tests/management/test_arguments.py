from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.utils import timezone

from workflow_engine.domain.statuses import LIVE, Status
from workflow_engine.management.arguments import parse_data, parse_duration, parse_moment, parse_statuses

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(("text", "value"), [(None, None), ('{"a": [1, null]}', {"a": [1, None]}), ("3", 3)])
def test_data_is_json(text: str | None, value: Any) -> None:
    assert parse_data(text, "--data") == value


def test_data_may_be_in_a_file_or_on_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data.json"
    file.write_text('{"name": "Zoë"}', encoding="utf-8")
    assert parse_data(f"@{file}", "--data") == {"name": "Zoë"}
    monkeypatch.setattr("sys.stdin", io.StringIO("[1]"))
    assert parse_data("-", "--data") == [1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{a: 1}",
            (
                "--data is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)."
                " Write it like '{\"a\": 1}', or give @file or - for standard input."
            ),
        ),
        ("@/nowhere/data.json", "--data: '/nowhere/data.json' can't be read: No such file or directory."),
    ],
)
def test_data_that_is_no_json_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CommandError, match=f"^{re.escape(problem)}$"):
        parse_data(text, "--data")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\xff")
    with pytest.raises(CommandError, match=r"^--data: '.*data' can't be read: 'utf-8' codec can't decode byte 0xff"):
        parse_data(f"@{tmp_path / 'data'}", "--data")


def test_json_nested_without_end_is_refused() -> None:
    with pytest.raises(CommandError, match=r"^--data is not JSON: "):
        parse_data("[" * 200_000, "--data")


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("90", timedelta(seconds=90)),
        ("0", timedelta()),
        ("90s", timedelta(seconds=90)),
        ("30 m", timedelta(minutes=30)),
        ("2H", timedelta(hours=2)),
        ("1.5h", timedelta(minutes=90)),
        ("1d12h", timedelta(hours=36)),
        ("2w", timedelta(days=14)),
    ],
)
def test_a_length_of_time_is_written_in_units(text: str, duration: timedelta) -> None:
    assert parse_duration(text, "--older-than") == duration


@pytest.mark.parametrize("text", ["", "2x", "h", "2h-", "-2h", "nan", "1e3", "9999999999999999999d", "999999d", "²h"])
def test_anything_else_is_no_length_of_time(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_duration(text, "--older-than")
    assert str(caught.value) == (f"--older-than is {text!r}. Write a length of time like 90s, 30m, 2h, 7d or 1d12h.")


def test_a_moment_is_a_length_of_time_ago_or_a_date_and_time() -> None:
    assert parse_moment("2h", NOW, "--failed-since") == NOW - timedelta(hours=2)
    assert parse_moment("2030-01-01T00:00+02:00", NOW, "--failed-since") == datetime(2029, 12, 31, 22, tzinfo=UTC)
    with timezone.override("Europe/Berlin"):
        assert parse_moment("2030-01-01T00:00", NOW, "--failed-since") == datetime(2029, 12, 31, 23, tzinfo=UTC)


@pytest.mark.parametrize("text", ["yesterday", "2030-13-01T00:00", "900000d"])
def test_anything_else_is_no_moment(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_moment(text, NOW, "--failed-since")
    assert str(caught.value) == (
        f"--failed-since is {text!r}. Write how long ago, like 2h or 7d, or a moment like 2030-01-31T12:00."
    )


def test_statuses_are_named_and_live_stands_for_all_that_have_not_ended() -> None:
    assert parse_statuses(["failed", "awaiting"]) == {Status.FAILED, Status.AWAITING}
    assert parse_statuses(["live"]) == LIVE
    assert parse_statuses([]) == frozenset()
    with pytest.raises(CommandError, match=r"^There is no status 'wating'\. Did you mean 'awaiting'\?$"):
        parse_statuses(["wating"])
