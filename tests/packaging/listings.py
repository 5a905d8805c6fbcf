"""Reads the code blocks of a Markdown file, with what the comments before them say. See test_listings.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
"""Builds a project of its own, so it is not run within the tests' project: see test_tutorial.py."""
DOCUMENTS = [ROOT / "README.md", *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path != TUTORIAL)]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w+-]*)")
_COMMENT = re.compile(r"^ *<!-- listing: (?P<text>.+?) -->$")
_HEADING = re.compile(r"^#+ +(?P<text>.+?) *$")
_DIRECTIVE = re.compile(r"^(?P<verb>not run|run|file|add to)(?:[: ]+(?P<detail>\S.*))?$")
_NEEDS_DETAIL = {"not run": True, "file": True, "add to": True, "run": False}


class ListingError(Exception):
    """A comment or a fence in a document that means nothing."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path.name}:{line}: {problem}")


@dataclass(frozen=True)
class Listing:
    """One fenced block. `line` is the line its text begins on; `verb` and `detail` are the comment's, or empty."""

    path: Path
    line: int
    language: str
    text: str
    heading: str
    verb: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}"


def read_listings(path: Path) -> list[Listing]:
    """Every fenced block of the file, in order."""
    listings: list[Listing] = []
    heading, directive = "", ("", "")
    lines = iter(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            text = _block(lines, fence["fence"], path, number)
            listings.append(Listing(path, number + 1, fence["language"], text, heading, *directive))
            directive = ("", "")
        elif comment := _COMMENT.match(line):
            directive = _directive(comment["text"], path, number)
        elif line.strip():
            if directive[0]:
                raise ListingError(path, number, "a listing comment is followed by something else than a listing")
            if title := _HEADING.match(line):
                heading = title["text"]
    return listings


def commands_of(listing: Listing) -> Iterator[tuple[str, str]]:
    """The (command, output) pairs of a console block, whose commands begin with `$ `."""
    for part in re.split(r"^(?=\$ )", listing.text, flags=re.MULTILINE):
        if part.strip():
            assert part.startswith("$ "), f"{listing}: a command begins with `$ `, not like: {part}"
            command, _, output = part.removeprefix("$ ").partition("\n")
            yield command, output.strip()


def matches(expected: str, printed: str) -> bool:
    """Whether the text is the expected one. `...` stands for anything; ids, moments, lengths of time, numbers of
    processes and the width of gaps differ from run to run, so those of the document are examples.
    """
    pattern = re.sub(r"(?:\\\.){3}", ".*?", re.escape(_plain(expected)))
    return re.fullmatch(pattern, _plain(printed), re.DOTALL) is not None


_LENGTH = r"\b\d+ (?:ms|[dhms])\b(?: \d+ [hms]\b)?"
_VARYING = {
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "<id>",
    r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+\b": "<moment>",
    rf"{_LENGTH} ago\b|\bnow\b": "<ago>",
    _LENGTH: "<length>",
    r"\b(Worker|worker process) \d+\b": r"\1 <pid>",
    r" {2,}": "  ",
}


def _plain(text: str) -> str:
    plain = "\n".join(line.rstrip() for line in text.strip().splitlines())
    for varying, name in _VARYING.items():
        plain = re.sub(varying, name, plain)
    return plain


def _block(lines: Iterator[tuple[int, str]], fence: str, path: Path, opened: int) -> str:
    block: list[str] = []
    for _, line in lines:
        if line.strip() == fence:
            return dedent("\n".join(block)) + "\n"
        block.append(line)
    raise ListingError(path, opened, "this block is never closed")


def _directive(text: str, path: Path, line: int) -> tuple[str, str]:
    match = _DIRECTIVE.match(text)
    if match is None or bool(match["detail"]) is not _NEEDS_DETAIL[match["verb"]]:
        problem = "a listing comment is one of `not run: reason`, `file path/name.py`, `add to path/name.py`, `run`"
        raise ListingError(path, line, f"{problem}, not `{text}`")
    return match["verb"], match["detail"] or ""
