"""Columns of text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unicodedata import combining, east_asian_width

_GAP = "  "


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with the columns under each other, each as wide as its widest cell."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(_width(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        yield _GAP.join(cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()


def _width(text: str) -> int:
    """Columns on a terminal: CJK takes two, a combining accent none."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
