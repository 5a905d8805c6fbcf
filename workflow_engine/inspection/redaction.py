"""Stored data for human eyes: what REDACT names is masked, and what is too long is cut."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import import_string

from workflow_engine import conf
from workflow_engine.inspection.wording import visible

MASK = "\N{BULLET}" * 3
"""Shown instead of what is masked."""

Masker = Callable[[str, Any], Any]
"""Given the key that a value stands under and the value; returns what is shown of it."""

_LONGEST = 20_000
_LONGEST_STRING = 2_000
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")

logger = logging.getLogger("workflow_engine")


@dataclass(frozen=True, slots=True)
class Readable:
    """A JSON value as indented text. `cut`: so many characters are left out at its end."""

    text: str
    cut: int = 0


def redacted(value: Any, name: str = "") -> Any:
    """A copy of a JSON value in which what REDACT names is masked.

    An entry of REDACT without a dot masks every key that contains it, whatever its case and punctuation; one with a dot
    is the path of a `Masker`, asked of every single value. When that fails, the value is masked.
    """
    entries: Sequence[str] = conf.current().REDACT
    names = [_plain(entry) for entry in entries if "." not in entry]
    return _redacted(value, name, [word for word in names if word], [_masker(path) for path in entries if "." in path])


def redacted_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A recorded failure with its text masked; the rest of it is the engine's own."""
    return {**error, "message": _text(error.get("message", ""), "message")} if error else None


def redacted_event(data: Mapping[str, Any]) -> dict[str, Any]:
    """What an event tells, with the texts masked that `timeline.entry` puts into its sentence."""
    texts = {name: _text(data[name], name) for name in ("traceback", "reason") if data.get(name)}
    return {**data, **texts, "error": redacted_error(data.get("error"))}


def readable(value: Any, limit: int = _LONGEST) -> Readable:
    """A stored value, masked, as text for people; long texts in it are cut, and so is the whole."""
    text = json.dumps(_shortened(redacted(value)), indent=2, ensure_ascii=False)
    shown = "\n".join(visible(line) for line in text[:limit].split("\n"))
    return Readable(shown, max(len(text) - limit, 0))


def _text(text: object, name: str) -> str:
    return str(redacted(text, name))


def _redacted(value: Any, name: str, names: Sequence[str], maskers: Sequence[Masker]) -> Any:
    plain = _plain(name)
    if value is not None and any(word in plain for word in names):
        return MASK
    if isinstance(value, dict):
        return {key: _redacted(item, key, names, maskers) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, name, names, maskers) for item in value]
    for masker in maskers if value is not None else ():
        value = _asked(masker, name, value)
    return value


def _asked(masker: Masker, name: str, value: Any) -> Any:
    try:
        shown = masker(name, value)
        json.dumps(shown)
    except Exception:
        logger.warning("A callable of REDACT failed; the value is masked", exc_info=True)
        return MASK
    return shown


def _masker(path: str) -> Masker:
    try:
        masker: Masker = import_string(path)
    except ImportError:
        return lambda _name, _value: MASK
    return masker


def _plain(name: str) -> str:
    return _NEITHER_LETTER_NOR_DIGIT.sub("", name).lower()


def _shortened(value: Any) -> Any:
    match value:
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
        case list():
            return [_shortened(item) for item in value]
        case str() if len(value) > _LONGEST_STRING:
            return f"{value[:_LONGEST_STRING]}\N{HORIZONTAL ELLIPSIS}"
    return value
