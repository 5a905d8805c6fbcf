"""What people type, as values: JSON, lengths of time, moments, statuses. Each error says what would be right."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware
from django.utils.translation import gettext as _

from workflow_engine.domain.durations import LONGEST
from workflow_engine.domain.statuses import LIVE, Status
from workflow_engine.exceptions import nearest

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)
_LIVE = "live"


def parse_data(text: str | None, option: str) -> Any:
    """The value of JSON written on the command line, in a file (`@path`) or on standard input (`-`); None for none.

    Raises:
        CommandError: it is not JSON, or the file can't be read.
    """
    if text is None:
        return None
    source = _read(text, option)
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as error:
        told = {"option": option, "error": error}
        raise CommandError(
            _("%(option)s is not JSON: %(error)s. Write it like '{\"a\": 1}', or give @file or - for standard input.")
            % told
        ) from error


def parse_duration(text: str, option: str) -> timedelta:
    """`90s`, `30m`, `2h`, `1d`, `1d12h`, or a number of seconds.

    Raises:
        CommandError: it is none of these, or longer than a thousand years.
    """
    compact = text.strip().lower().replace(" ", "")
    compact = f"{compact}s" if compact.replace(".", "", 1).isdecimal() else compact
    parts = _PART.findall(compact)
    if parts and "".join(number + unit for number, unit in parts) == compact:
        try:
            duration = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
        except OverflowError:
            duration = LONGEST * 2
        if duration <= LONGEST:
            return duration
    told = {"option": option, "value": repr(text)}
    raise CommandError(_("%(option)s is %(value)s. Write a length of time like 90s, 30m, 2h, 7d or 1d12h.") % told)


def parse_moment(text: str, now: datetime, option: str) -> datetime:
    """A length of time before now, or a date and time (of the current time zone unless it names one).

    Raises:
        CommandError: it is neither.
    """
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is not None:
        return make_aware(moment) if is_naive(moment) else moment
    try:
        return now - parse_duration(text, option)
    except (CommandError, OverflowError):
        told = {"option": option, "value": repr(text)}
        raise CommandError(
            _("%(option)s is %(value)s. Write how long ago, like 2h or 7d, or a moment like 2030-01-31T12:00.") % told
        ) from None


def parse_statuses(texts: Iterable[str]) -> frozenset[Status]:
    """Statuses by name; `live` stands for all that have not ended.

    Raises:
        CommandError: there is no such status.
    """
    statuses: set[Status] = set()
    for text in texts:
        if text == _LIVE:
            statuses |= LIVE
        elif text in set(Status):
            statuses.add(Status(text))
        else:
            told = {"value": repr(text), "nearest": nearest(text, [*(status.value for status in Status), _LIVE])}
            raise CommandError(_("There is no status %(value)s. %(nearest)s") % told)
    return frozenset(statuses)


def _read(text: str, option: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = {"option": option, "path": repr(text[1:]), "error": getattr(error, "strerror", None) or error}
        raise CommandError(_("%(option)s: %(path)s can't be read: %(error)s.") % told) from error
