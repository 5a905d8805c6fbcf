"""The one door to the log: every event a line, with ids in `extra`, never a context."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from workflow_engine.domain.events import EventKind
from workflow_engine.engine.user_code import user_frames

if TYPE_CHECKING:
    from workflow_engine.after_commit import Effects
    from workflow_engine.models import WorkflowEvent, WorkflowInstance

_LEVELS = {
    EventKind.COMPENSATION_ATTEMPT_FAILED: logging.WARNING,
    EventKind.COMPENSATION_FAILED: logging.ERROR,
    EventKind.REQUEST_DENIED: logging.WARNING,
    EventKind.WORKFLOW_FAILED: logging.ERROR,
}


def report(effects: Effects, row: WorkflowInstance, event: WorkflowEvent, exc: BaseException | None) -> None:
    """Log one event after commit: WARNING when it is tried again, ERROR when it is not, else INFO."""
    raised = exc if event.kind == EventKind.STEP_FAILED else None
    effects.log(
        _level(event),
        "%s %s: %s%s%s",
        one_line(row.workflow_name),
        row.pk,
        event.kind,
        f" of step {one_line(event.step)} (visit {event.visit})" if event.step else "",
        _details(event),
        exc_info=None if raised is None else (type(raised), raised, user_frames(raised.__traceback__)),
        **ids(row),
        workflow_event=event.kind,
        workflow_step=event.step,
        workflow_attempt=event.attempt,
    )


def ids(row: WorkflowInstance) -> dict[str, Any]:
    """What a log record carries in `extra` to be found by."""
    return {"workflow_name": row.workflow_name, "workflow_instance_id": str(row.pk)}


def one_line(text: str) -> str:
    """`text` with line breaks and control characters escaped: a log line stays one line."""
    return text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text


def _level(event: WorkflowEvent) -> int:
    if event.kind == EventKind.STEP_FAILED:
        return logging.ERROR if event.data.get("final") else logging.WARNING
    return _LEVELS.get(EventKind(event.kind), logging.INFO)


def _details(event: WorkflowEvent) -> str:
    error = event.data.get("error")
    if error:
        return f": {one_line(error['type'])}: {one_line(error['message'])}"
    return f": {one_line(event.data['reason'])}" if event.data.get("reason") else ""
