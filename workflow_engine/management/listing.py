"""Instances as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.utils.translation import gettext as _

from workflow_engine.inspection import standing
from workflow_engine.inspection.times import relative
from workflow_engine.inspection.wording import error_line, one_line
from workflow_engine.management.tables import table
from workflow_engine.models import WorkflowInstance

HEAVY = ("input", "context", "result", "compensation_stack", "step_sequence")
"""Columns that a list has no use for and that may be large."""

_CELL = 40


def instance_table(rows: Iterable[WorkflowInstance], now: datetime) -> Iterator[str]:
    """A heading and a line per instance: which one, where it is, since when, what it waits for or what went wrong."""
    headings = (_("id"), _("workflow"), _("subject"), _("status"), _("step"), _("since"), _("waits for / error"))
    return table(headings, [_cells(row, now) for row in rows])


def _cells(row: WorkflowInstance, now: datetime) -> list[str]:
    status = str(row.get_status_display())
    return [
        str(row.pk),
        one_line(row.workflow_name, _CELL),
        one_line(":".join(row.subject_ref or ()), _CELL),
        _("%(status)s, paused") % {"status": status} if row.paused else status,
        one_line(row.current_step, _CELL),
        relative(row.status_changed_at, now),
        _last(row, now),
    ]


def _last(row: WorkflowInstance, now: datetime) -> str:
    if row.is_terminal:
        return error_line(row.error)
    waits_for, until = standing.waits_for(row, now), standing.until(row, now)
    return waits_for if until is None else f"{waits_for}, {relative(until, now)}"
