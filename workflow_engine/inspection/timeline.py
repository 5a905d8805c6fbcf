"""The history as people tell it: one short sentence per event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine.domain.events import EventKind
from workflow_engine.inspection.times import length
from workflow_engine.inspection.wording import either, error_line, one_line
from workflow_engine.models import WorkflowEvent, WorkflowInstance

_SENTENCES: Mapping[str, str | Promise] = {
    EventKind.WORKFLOW_STARTED: gettext_lazy("started"),
    EventKind.STEP_STARTED: gettext_lazy("%(step)s: attempt %(attempt)d began"),
    EventKind.STEP_COMPLETED: gettext_lazy("%(step)s: done"),
    EventKind.STEP_FAILED: gettext_lazy("%(step)s: failed: %(error)s"),
    EventKind.STEP_TIMED_OUT: gettext_lazy("%(step)s: %(names)s did not come in time"),
    EventKind.SIGNAL_RECEIVED: gettext_lazy("%(step)s: got %(signal)s (#%(signal_id)s)"),
    EventKind.WORKFLOW_AWAITING: gettext_lazy("%(step)s: waits for %(names)s"),
    EventKind.WORKFLOW_SLEPT: gettext_lazy("%(step)s: sleeps"),
    EventKind.WORKFLOW_COMPLETED: gettext_lazy("completed"),
    EventKind.WORKFLOW_COMPENSATING: gettext_lazy("what was done is being undone"),
    EventKind.COMPENSATION_STARTED: gettext_lazy("undo of %(step)s: attempt %(attempt)d began"),
    EventKind.COMPENSATION_ATTEMPT_FAILED: gettext_lazy("undo of %(step)s: attempt %(attempt)d failed: %(error)s"),
    EventKind.STEP_COMPENSATED: gettext_lazy("%(step)s: undone"),
    EventKind.COMPENSATION_FAILED: gettext_lazy("%(step)s: could not be undone: %(error)s"),
    EventKind.WORKFLOW_FAILED: gettext_lazy("failed"),
    EventKind.WORKFLOW_COMPENSATED: gettext_lazy("failed, and all that was done is undone"),
    EventKind.WORKFLOW_CANCELLED: gettext_lazy("cancelled"),
    EventKind.WORKFLOW_RETRIED: gettext_lazy("retried"),
    EventKind.WORKFLOW_PAUSED: gettext_lazy("paused"),
    EventKind.WORKFLOW_RESUMED: gettext_lazy("resumed"),
    EventKind.CANCEL_REQUESTED: gettext_lazy("a cancellation was requested"),
    EventKind.VERSION_CHANGED: gettext_lazy("goes on with version %(version)s of its workflow"),
    EventKind.REQUEST_DENIED: gettext_lazy("%(request)s was refused"),
}
_FAILED_AGAIN = gettext_lazy("%(step)s: attempt %(attempt)d failed: %(error)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event in words. `traceback` is that of a failure, as stored."""

    seq: int
    at: datetime
    text: str
    actor: str
    traceback: str


def timeline(row: WorkflowInstance, *, last: int | None = None) -> list[Entry]:
    """The instance's history in order; only its end, if `last` says how much."""
    events = row.events.order_by("-seq")
    return [entry(event) for event in reversed(events if last is None else events[:last])]


def entry(event: WorkflowEvent) -> Entry:
    """The event in words."""
    sentence = _FAILED_AGAIN if event.kind == EventKind.STEP_FAILED and event.attempt else _SENTENCES[event.kind]
    return Entry(
        seq=event.seq,
        at=event.created_at,
        text=": ".join([", ".join([str(sentence) % _facts(event), *_details(event)]), *_reason(event)]),
        actor=one_line(event.actor),
        traceback=str(event.data.get("traceback", "")),
    )


def _facts(event: WorkflowEvent) -> dict[str, Any]:
    data = event.data
    return {
        "step": one_line(event.step),
        "attempt": event.attempt,
        "error": error_line(data.get("error")),
        "names": either(data.get("awaited") or _set(event).get("awaiting_signals") or ()),
        "signal": one_line(data.get("signal", "")),
        "signal_id": data.get("signal_id", ""),
        "request": one_line(data.get("request", "")),
        "version": _set(event).get("definition_version", ""),
    }


def _details(event: WorkflowEvent) -> Iterator[str]:
    data = event.data
    if event.kind == EventKind.STEP_COMPLETED and event.duration is not None:
        yield _("in %(length)s") % {"length": length(event.duration)}
    if "goto" in data:
        yield _("went to %(step)s") % {"step": one_line(data["goto"])}
    if event.kind == EventKind.STEP_FAILED:
        yield _("for good") if data.get("final") else _("again after %(length)s") % _until(event, "due_at")
    if event.kind == EventKind.WORKFLOW_AWAITING and _moment(event, "deadline_at"):
        yield _("for at most %(length)s") % _until(event, "deadline_at")
    if event.kind == EventKind.WORKFLOW_SLEPT:
        yield _("for %(length)s") % _until(event, "due_at")


def _reason(event: WorkflowEvent) -> list[str]:
    reason = event.data.get("reason")
    return [one_line(reason)] if reason else []


def _until(event: WorkflowEvent, column: str) -> dict[str, str]:
    """How long it was from the event to the moment that it set."""
    return {"length": length((_moment(event, column) or event.created_at) - event.created_at)}


def _moment(event: WorkflowEvent, column: str) -> datetime | None:
    text = _set(event).get(column)
    return parse_datetime(text) if isinstance(text, str) else None


def _set(event: WorkflowEvent) -> Mapping[str, Any]:
    """The columns that the event changed."""
    changed = event.data.get("set")
    return changed if isinstance(changed, Mapping) else {}
