"""Moments and lengths of time in the words of people: "6 h 21 m ago", "in 17 h 39 m", "now"."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.timezone import localtime
from django.utils.translation import gettext as _

_SECOND = timedelta(seconds=1)
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def length(span: timedelta) -> str:
    """A length of time in its two largest units, rounded down; below a second in milliseconds."""
    if timedelta() < abs(span) < _SECOND:
        return _("%(count)d ms") % {"count": abs(span) // timedelta(milliseconds=1)}
    seconds = int(abs(span).total_seconds())
    if seconds >= _DAY:
        return _pair(_("%(count)d d"), seconds // _DAY, _("%(count)d h"), seconds % _DAY // _HOUR)
    if seconds >= _HOUR:
        return _pair(_("%(count)d h"), seconds // _HOUR, _("%(count)d m"), seconds % _HOUR // _MINUTE)
    if seconds >= _MINUTE:
        return _pair(_("%(count)d m"), seconds // _MINUTE, _("%(count)d s"), seconds % _MINUTE)
    return _("%(count)d s") % {"count": seconds}


def relative(moment: datetime, now: datetime) -> str:
    """How far `moment` is from `now`: ago, in, or now."""
    span = moment - now
    if abs(span) < _SECOND:
        return _("now")
    if span < timedelta():
        return _("%(length)s ago") % {"length": length(span)}
    return _("in %(length)s") % {"length": length(span)}


def exact(moment: datetime) -> str:
    """The moment by the clock of the current time zone, which it names."""
    return localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


def both(moment: datetime, now: datetime) -> str:
    """What people grasp, and what they look up in other logs."""
    return f"{relative(moment, now)} ({exact(moment)})"


def _pair(large: str, larges: int, small: str, smalls: int) -> str:
    text = large % {"count": larges}
    return f"{text} {small % {'count': smalls}}" if smalls else text
