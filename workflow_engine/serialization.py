"""The one gate every value passes before it is written as JSON.

The databases disagree on what JSON is: PostgreSQL refuses NUL and lone surrogates, MariaDB nesting over 32, all
three refuse NaN with three different errors, and a failure after a step's effect would poison the instance. So a
value is checked and encoded here, before any write, and what does not pass is named by its key path.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from django.utils.functional import Promise

from workflow_engine import conf
from workflow_engine.domain.durations import shown
from workflow_engine.exceptions import NotSerializableError

MAX_DEPTH = 30
MAX_INTEGER = 2**63 - 1
"""MySQL's JSON keeps integers to 64 bits and turns longer ones into floats without a word."""

_HINTS = {
    "set": "a set has no order; store sorted(...) of it",
    "frozenset": "a set has no order; store sorted(...) of it",
    "bytes": "bytes are not text; store base64 or a file's name",
    "QuerySet": "a QuerySet is a query, not its rows; store a list of primary keys",
}


def to_json(value: Any, what: str) -> Any:
    """The JSON form of `value`: only dict, list, str, int, float, bool and None, checked and free of surprises.

    Encoded: Decimal as its string, datetime/date/time in ISO 8601 (microseconds kept), timedelta as seconds, UUID as
    a string, Enum as its value, a dataclass as a dict, a tuple as a list, a lazy translation as its text.

    Args:
        value: anything.
        what: names the value in the error, e.g. "context" or "signal data".

    Raises:
        NotSerializableError: the value, or one inside it, can't be stored; names its key path.
    """
    encoded = _encode(value, what, (), 1)
    check_size(encoded, what)
    return encoded


def check_size(encoded: Any, what: str) -> None:
    """Refuse a JSON value that is larger than the setting allows.

    Raises:
        NotSerializableError: with the size and the limit.
    """
    size = len(json.dumps(encoded, ensure_ascii=False, separators=(",", ":")).encode())
    if size > (limit := conf.current().MAX_PAYLOAD_BYTES):
        problem = f"{size:,} bytes of JSON, more than the {limit:,} of WORKFLOW_ENGINE['MAX_PAYLOAD_BYTES']"
        raise NotSerializableError(what, "", f"{problem}; store it in a table or file and pass its key")


def object_to_json(value: Any, what: str) -> dict[str, Any]:
    """Like `to_json`, for what must be a JSON object; None is the empty one.

    Raises:
        NotSerializableError: as `to_json`, and for a value that is not a mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) and not (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        raise NotSerializableError(what, "", f"must be a dict, not {type(value).__name__}")
    encoded: dict[str, Any] = to_json(value, what)
    return encoded


def short_text(value: Any, what: str, limit: int) -> str:
    """`value`, if it is a text that a column of `limit` characters takes on every database.

    Raises:
        NotSerializableError: it is not.
    """
    if not isinstance(value, str) or not 0 < len(value) <= limit:
        raise NotSerializableError(what, "", f"must be a text of 1 to {limit} characters, not {shown(value)}")
    return _text(value, what, ())


def canonical(value: Any) -> str:
    """One text for equal JSON values, for fingerprints: sorted keys, no spaces, floats that are integers as such."""
    return json.dumps(_canonical_numbers(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def clean_text(text: str, limit: int = 2000) -> str:
    """`text` as every database takes it: NUL and lone surrogates replaced, cut to `limit` characters.

    Error texts are cleaned, not refused: the failure of a step must always be recordable.
    """
    safe = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def _encode(value: Any, what: str, path: tuple[str, ...], depth: int) -> Any:
    match value:
        case Enum():
            return _encode(value.value, what, path, depth)
        case None | bool():
            return value
        case str() | Promise():
            return _text(str(value), what, path)
        case int():
            return _integer(int(value), what, path)
        case float():
            return _number(float(value), what, path)
        case Mapping():
            return _mapping(value, what, path, depth)
        case list() | tuple():
            _check_depth(what, path, depth)
            return [_encode(item, what, (*path, f"[{i}]"), depth + 1) for i, item in enumerate(value)]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _mapping({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, what, path, depth)
        case _:
            return _scalar(value, what, path)


def _scalar(value: Any, what: str, path: tuple[str, ...]) -> Any:
    match value:
        case Decimal():
            return _finite(str(value), value.is_finite(), what, path)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
    kind = type(value).__name__
    hint = next((_HINTS[base.__name__] for base in type(value).__mro__ if base.__name__ in _HINTS), None)
    raise NotSerializableError(what, _dotted(path), hint or f"a {kind} is not JSON; store its primary key or fields")


def _mapping(value: Mapping[Any, Any], what: str, path: tuple[str, ...], depth: int) -> dict[str, Any]:
    _check_depth(what, path, depth)
    encoded = {}
    for key, item in value.items():
        if not isinstance(key, str) or isinstance(key, Enum):
            problem = f"the key {key!r} is {type(key).__name__}, not str; write it as a string"
            raise NotSerializableError(what, _dotted(path), problem)
        _text(key, what, (*path, ascii(key)))
        encoded[key] = _encode(item, what, (*path, key), depth + 1)
    return encoded


def _check_depth(what: str, path: tuple[str, ...], depth: int) -> None:
    if depth > MAX_DEPTH:
        problem = f"nested deeper than {MAX_DEPTH} levels, which MariaDB can't store; flatten it"
        raise NotSerializableError(what, _dotted(path[:3]) + "…", problem)


def _text(text: str, what: str, path: tuple[str, ...]) -> str:
    if "\x00" in text:
        raise NotSerializableError(what, _dotted(path), "contains NUL (\\x00), which PostgreSQL can't store; remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = "contains a lone surrogate, which is not Unicode text; decode with errors='replace'"
        raise NotSerializableError(what, _dotted(path), problem) from None
    return text


def _integer(number: int, what: str, path: tuple[str, ...]) -> int:
    if abs(number) > MAX_INTEGER:
        raise NotSerializableError(what, _dotted(path), "an integer over 64 bits loses digits in MySQL; store a string")
    return number


def _number(number: float, what: str, path: tuple[str, ...]) -> float:
    _finite(str(number), math.isfinite(number), what, path)
    return number


def _finite(text: str, finite: bool, what: str, path: tuple[str, ...]) -> str:  # noqa: FBT001 - the answer of isfinite
    if not finite:
        raise NotSerializableError(what, _dotted(path), f"{text} is not a JSON number; store None or a string")
    return text


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")


def _canonical_numbers(value: Any) -> Any:
    """PostgreSQL's jsonb gives 1.0 back as 1.0 but 1e22 as an int: compare numbers by value."""
    match value:
        case dict():
            return {key: _canonical_numbers(item) for key, item in value.items()}
        case list():
            return [_canonical_numbers(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
