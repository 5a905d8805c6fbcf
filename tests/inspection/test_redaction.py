from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from workflow_engine.inspection.redaction import Readable, readable, redacted, redacted_error, redacted_event


def address(key: str, value: Any) -> Any:
    return "(an address)" if isinstance(value, str) and "@" in value else value


def unfit(key: str, value: Any) -> Any:
    return object()


@pytest.mark.parametrize("key", ["password", "Password", "user_password", "PASS-WORD", "passWord2"])
def test_a_word_masks_every_key_that_contains_it(key: str) -> None:
    assert redacted({key: "x", "open": "y"}) == {key: "•••", "open": "y"}


def test_what_stands_under_a_masked_key_is_masked_as_a_whole() -> None:
    value = {"list": [{"token": {"a": [1]}}, {"token": None}]}
    assert redacted(value) == {"list": [{"token": "•••"}, {"token": None}]}
    assert value == {"list": [{"token": {"a": [1]}}, {"token": None}]}


def test_a_list_of_ones_own_replaces_the_default(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": ["street"]}
    assert redacted({"password": "x", "Street": "y"}) == {"password": "x", "Street": "•••"}


def test_a_callable_is_asked_of_every_single_value(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": ["pin", f"{__name__}.address"]}
    value = {"to": ["ada@example.org", 7, None], "pin": "ada@example.org"}
    assert redacted(value) == {"to": ["(an address)", 7, None], "pin": "•••"}


@pytest.mark.parametrize("path", [f"{__name__}.unfit", "no.such.thing"])
def test_what_a_callable_can_not_judge_is_masked(settings: Settings, path: str) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": [path]}
    assert redacted({"a": 1, "b": None}) == {"a": "•••", "b": None}


def test_errors_and_events_keep_their_form(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": [f"{__name__}.address"]}
    error = {"type": "Fail", "message": "no ada@example.org", "step": "a", "attempt": 1}
    masked = {**error, "message": "(an address)"}
    assert redacted_error(error) == masked
    assert redacted_error(None) is None
    data = {"error": error, "traceback": "ada@example.org", "set": {"due_at": "2026-01-01"}}
    assert redacted_event(data) == {"error": masked, "traceback": "(an address)", "set": {"due_at": "2026-01-01"}}


def test_a_value_is_readable() -> None:
    assert readable({"a": [1], "ä": None}) == Readable('{\n  "a": [\n    1\n  ],\n  "ä": null\n}')


def test_what_hides_or_turns_text_around_is_made_visible() -> None:
    assert readable("\u202eabc\u200b") == Readable('"\\u202eabc\\u200b"')


def test_long_values_are_cut() -> None:
    assert readable(["abc", "def"], limit=8) == Readable('[\n  "abc', 12)
    assert readable("x" * 2001).text == '"' + "x" * 2000 + '…"'
