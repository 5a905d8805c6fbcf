"""Options that say which instances are meant, for the commands that take many."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from workflow_engine import clock
from workflow_engine.inspection import finding
from workflow_engine.inspection.selecting import Selection
from workflow_engine.management.arguments import parse_duration, parse_moment, parse_statuses

_MOST = 10**9
"""No database counts on for ever; nobody reads so many."""


def add_filters(parser: CommandParser) -> None:
    """Add the filters; each narrows down what the others leave."""
    group = parser.add_argument_group(_("which instances"))
    group.add_argument("--workflow", default="", metavar="NAME", help=_("Of this workflow."))
    group.add_argument(
        "--status", action="append", default=[], metavar="STATUS", help=_("In this status, or `live`. May be repeated.")
    )
    group.add_argument("--step", default="", metavar="KEY", help=_("At this step."))
    group.add_argument("--subject", default="", metavar="MODEL:KEY", help=_("About this object, e.g. shop.order:42."))
    group.add_argument("--awaiting", default="", metavar="SIGNAL", help=_("Waiting for this signal."))
    group.add_argument("--paused", action="store_true", help=_("Paused."))
    group.add_argument(
        "--stuck-longer-than",
        metavar="TIME",
        help=_("Live, not paused, and in the same status for longer than this, e.g. 2h."),
    )
    group.add_argument(
        "--failed-since", metavar="WHEN", help=_("Failed not longer ago than this, e.g. 2h, or since a moment.")
    )


def selection(options: dict[str, Any], using: str) -> Selection:
    """What was asked for.

    Raises:
        CommandError: a value is none.
        UnknownSubjectError: the subject is none.
    """
    stuck, failed_since = options["stuck_longer_than"], options["failed_since"]
    return Selection(
        statuses=parse_statuses(options["status"]),
        workflow=options["workflow"],
        step=options["step"],
        subject=finding.subject_of(options["subject"]) if options["subject"] else None,
        awaiting=options["awaiting"],
        paused=options["paused"],
        stuck_longer_than=None if stuck is None else parse_duration(stuck, "--stuck-longer-than"),
        failed_since=None if failed_since is None else parse_moment(failed_since, clock.now(using), "--failed-since"),
    )


def number_of(options: dict[str, Any], name: str, *, lowest: int = 1) -> int | None:
    """The value of an option that says how many; None where it is not given.

    Raises:
        CommandError: it is too low.
    """
    number: int | None = options[name]
    if number is None:
        return None
    if number < lowest:
        told = {"option": f"--{name}", "number": number, "lowest": lowest}
        raise CommandError(_("%(option)s is %(number)d. Give a number from %(lowest)d on.") % told)
    return min(number, _MOST)
