"""Why an instance is where it is, in plain words. From the row and the code; only `since` asks the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workflow_engine.domain.decisions.requests import why_not
from workflow_engine.domain.declarations import Declaration
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.registry import registry
from workflow_engine.domain.statuses import Status
from workflow_engine.domain.workflows import Workflow
from workflow_engine.engine import store
from workflow_engine.inspection import standing
from workflow_engine.inspection.wording import error_line, one_line
from workflow_engine.models import WorkflowInstance

VERBS = ("signal", "retry", "resume", "advance", "pause", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer. Texts are sentences or phrases in the reader's language, "" where there is nothing to say."""

    headline: str
    since: datetime
    waits_for: str
    until: datetime | None
    wrong: str
    """The failure that it recorded last and has not got over, on one line."""
    notes: Sequence[str]
    """What happens next, and what is out of the ordinary."""
    remaining: Sequence[str]
    """The steps after the current one, as they are listed; a jump may change that."""
    signals: Sequence[str]
    """The names that it awaits now."""
    verbs: Sequence[str]
    """What may be asked of it now, of `VERBS`."""


def explain(row: WorkflowInstance, now: datetime) -> Why:
    """Explain the instance as its row says it is, at the database's time `now`."""
    state = store.state_of(row)
    workflow = registry.for_row(row.workflow_name, row.definition_version, state.remaining_steps)
    declared = workflow.steps.get(row.current_step) if workflow else None
    going_on = not row.is_terminal and row.status != Status.COMPENSATING
    return Why(
        headline=standing.headline(row),
        since=since(row),
        waits_for=standing.waits_for(row, now),
        until=standing.until(row, now),
        wrong=_wrong(row, declared),
        notes=tuple(_notes(row, workflow, declared)),
        remaining=tuple(state.remaining_steps[1:]) if going_on else (),
        signals=tuple(row.awaiting_signals) if not row.handling else (),
        verbs=tuple(verb for verb in VERBS if _makes_sense(verb, row, now)),
    )


def since(row: WorkflowInstance) -> datetime:
    """Since when it has been where it is. The status may be older: it stays the same when a step follows a step."""
    if row.is_terminal or row.status == Status.COMPENSATING:
        return row.status_changed_at
    arrivals = (EventKind.STEP_COMPLETED, EventKind.WORKFLOW_AWAITING, EventKind.WORKFLOW_SLEPT)
    events = row.events.filter(kind__in=arrivals).order_by("-seq")
    last = events.values_list("created_at", flat=True).first()
    return row.status_changed_at if last is None else max(last, row.status_changed_at)


def _makes_sense(verb: str, row: WorkflowInstance, now: datetime) -> bool:
    return standing.is_due(row, now) if verb == "advance" else why_not(store.state_of(row), verb) is None


def _wrong(row: WorkflowInstance, declared: Declaration | None) -> str:
    if not row.error:
        return ""
    told = {
        "error": error_line(row.error),
        "step": one_line(row.error.get("step", "")),
        "attempt": row.error.get("attempt", 0),
        "most": declared.retry.max_attempts if declared else 0,
    }
    if not told["attempt"]:
        return _("%(error)s (%(step)s)") % told
    if declared and told["step"] == row.current_step and not row.is_terminal and row.status != Status.COMPENSATING:
        return _("%(error)s (%(step)s, attempt %(attempt)d of %(most)d)") % told
    return _("%(error)s (%(step)s, attempt %(attempt)d)") % told


def _notes(row: WorkflowInstance, workflow: type[Workflow[Any]] | None, declared: Declaration | None) -> Iterator[str]:
    if workflow is None and not row.is_terminal:
        told = {"workflow": one_line(row.workflow_name), "version": row.definition_version}
        yield _("No code here can run it: %(workflow)s version %(version)d is not registered.") % told
    if row.cancel_requested is not None:
        yield _("A cancellation is requested: it takes effect when the running activity is recorded or its lease ends.")
    if row.suspect and not row.is_terminal:
        yield _("The process that had it in hand has not reported back.")
    if row.recoveries:
        died = ngettext(
            "%(count)d process died while it worked on it.",
            "%(count)d processes in a row died while they worked on it.",
            row.recoveries,
        )
        yield died % {"count": row.recoveries}
    match row.status:
        case Status.COMPENSATING:
            yield from _undoing(row)
        case Status.FAILED:
            yield _after_failure(row)
        case Status.AWAITING if declared and not row.handling:
            yield from _after_waiting(row, declared)
        case Status.SLEEPING:
            yield _following(row)


def _after_waiting(row: WorkflowInstance, declared: Declaration) -> Iterator[str]:
    if declared.handles_signals:
        yield _("When it comes, %(handler)s decides.") % {
            "handler": declared.handlers.get("on_signal", "handle_signal")
        }
    else:
        yield _following(row)
    if row.deadline_at is None:
        yield _("It waits for as long as it takes.")
    elif declared.handles_timeout:
        handler = declared.handlers.get("on_timeout", "handle_timeout")
        yield _("If it does not come in time, %(handler)s decides.") % {"handler": handler}
    else:
        yield _("If it does not come in time, the step fails.")


def _following(row: WorkflowInstance) -> str:
    following = row.step_sequence[row.step_index + 1 :]
    if not following:
        return _("Then it is completed.")
    return _("Then comes %(step)s.") % {"step": one_line(following[0])}


def _undoing(row: WorkflowInstance) -> Iterator[str]:
    left = [entry["step"] for entry in reversed(row.compensation_stack) if _is_left(entry)]
    if left:
        yield _("Still to be undone: %(steps)s.") % {"steps": one_line(", ".join(left))}
    labels = dict(WorkflowInstance._meta.get_field("status").flatchoices)
    yield _("Then it ends as %(status)s.") % {"status": labels.get(row.ends_as, row.ends_as)}


def _is_left(entry: dict[str, Any]) -> bool:
    return entry["state"] != "known_failure" and "undo" not in entry


def _after_failure(row: WorkflowInstance) -> str:
    stuck = [entry["step"] for entry in row.compensation_stack if entry.get("undo") == "failed"]
    if stuck:
        return _("Could not be undone: %(steps)s. A retry tries that again.") % {"steps": one_line(", ".join(stuck))}
    return _("A retry runs %(step)s again, with fresh attempts.") % {"step": one_line(row.current_step)}
