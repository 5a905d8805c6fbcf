"""Small pieces of text that several answers are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

_LINE = 200


def one_line(text: object, limit: int = _LINE) -> str:
    """`text` on one line, visible as a whole, cut to `limit`."""
    shown = visible(str(text).strip())
    return shown if len(shown) <= limit else f"{shown[: limit - 3]}..."


def visible(text: str) -> str:
    """`text` without control characters: what is stored must not steer a terminal, nor hide from its reader."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    shown = [one_line(name) for name in names]
    if len(shown) < 2:  # noqa: PLR2004 - "or" stands between two
        return "".join(shown)
    return _("%(all_but_last)s or %(last)s") % {"all_but_last": ", ".join(shown[:-1]), "last": shown[-1]}


def error_line(error: Mapping[str, Any] | None) -> str:
    """A recorded failure on one line: its type and message; "" for none."""
    if not error:
        return ""
    return one_line(f"{error.get('type', '')}: {error.get('message', '')}")


def _escaped(char: str) -> str:
    return " " if char in "\n\r\t" else char.encode("unicode_escape").decode("ascii")
