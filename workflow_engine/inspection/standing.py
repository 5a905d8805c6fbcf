"""Where an instance stands and what it waits for, each in a phrase. Read from the row alone: no query."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from workflow_engine.domain.decisions.failure import next_undo
from workflow_engine.domain.statuses import Status
from workflow_engine.engine import store
from workflow_engine.inspection.times import relative
from workflow_engine.inspection.wording import either, one_line
from workflow_engine.models import WorkflowInstance


def headline(row: WorkflowInstance) -> str:
    """The status with what belongs to it: "awaiting payment at await_payment, paused"."""
    text = _placed(row)
    return _("%(text)s, paused") % {"text": text} if row.paused else text


def summary(row: WorkflowInstance, now: datetime) -> str:
    """One line about one instance, with its id: what a command says when it has done something to it."""
    told = {"workflow": one_line(row.workflow_name), "id": row.pk, "headline": headline(row)}
    text = _("%(workflow)s %(id)s: %(headline)s") % told
    moment = until(row, now)
    return text if moment is None else _("%(text)s, %(until)s") % {"text": text, "until": relative(moment, now)}


def until(row: WorkflowInstance, now: datetime) -> datetime | None:
    """When time alone will move it; None when it is due already, or only something from outside moves it."""
    return None if row.is_terminal or row.paused or is_due(row, now) else row.due_at


def is_due(row: WorkflowInstance, now: datetime) -> bool:
    """Whether it can be acted on now."""
    return not row.is_terminal and not row.paused and row.due_at is not None and row.due_at <= now


def waits_for(row: WorkflowInstance, now: datetime) -> str:
    """What has to happen for it to move; "" once it has ended."""
    if row.is_terminal:
        return ""
    if row.paused:
        return _("somebody to resume it")
    if is_due(row, now):
        return _waits_for_a_process(row, now)
    if row.has_lease:
        return _("the undo that is running now") if row.status == Status.COMPENSATING else _("the activity running now")
    if row.status == Status.AWAITING and not row.handling:
        return either(row.awaiting_signals)
    if row.status == Status.SLEEPING:
        return _("the end of its sleep")
    return _("the next attempt")


def _placed(row: WorkflowInstance) -> str:
    told = {"status": row.get_status_display(), "step": one_line(row.current_step)}
    match row.status:
        case Status.AWAITING:
            names = {"names": either(row.awaiting_signals)}
            return _("%(status)s %(names)s at %(step)s") % {**told, **names}
        case Status.COMPENSATING:
            entry = next_undo(store.state_of(row))
            return _("%(status)s, next %(step)s") % {**told, "step": one_line(entry["step"] if entry else "")}
        case Status.COMPLETED | Status.COMPENSATED | Status.CANCELLED:
            return str(told["status"])
    return _("%(status)s at %(step)s") % told


def _waits_for_a_process(row: WorkflowInstance, now: datetime) -> str:
    """It is due. Between its time and `poll_at` somebody has it in hand, or is about to."""
    if row.poll_at is not None and row.poll_at > now:
        return _("the worker that has it in hand")
    return _("a worker to take it")
