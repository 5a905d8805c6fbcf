from __future__ import annotations

import pytest

from workflow_engine.inspection.wording import either, error_line, one_line


def test_what_is_stored_cannot_steer_a_terminal() -> None:
    assert one_line("caf\u00e9\x1b[2J\nnext\u202e ") == "café\\x1b[2J next\\u202e"


def test_a_long_text_is_cut() -> None:
    assert one_line("a" * 300, 10) == "aaaaaaa..."


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")]
)
def test_names_are_joined_by_or(names: list[str], text: str) -> None:
    assert either(names) == text


def test_an_error_is_one_line_of_type_and_message() -> None:
    assert error_line({"type": "ValueError", "message": "no\nnumber"}) == "ValueError: no number"
    assert error_line(None) == ""
