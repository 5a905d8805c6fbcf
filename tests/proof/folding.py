"""What events mean, told independently of the engine: the fold, and what each kind of event may do.

Nothing of `workflow_engine.domain` is used here: what is judged must not be believed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.proof.tables import Row

OVER = frozenset({"completed", "compensated", "cancelled"})
TERMINAL = OVER | {"failed"}

_FORWARD = {"in_progress", "awaiting", "sleeping"}
_ENDINGS = {"completed", "failed", "cancelled", "compensating"}

LEADS_TO: Mapping[str, set[str]] = {
    "": {"pending"},
    "pending": _FORWARD | _ENDINGS,
    "in_progress": _FORWARD | _ENDINGS,
    "awaiting": _FORWARD | _ENDINGS,
    "sleeping": {"in_progress"} | _ENDINGS,
    "compensating": {"compensated", "failed", "cancelled"},
    "failed": {"in_progress", "awaiting", "compensating"},
}
"""Where each status may lead, beside itself."""

STATUS_AFTER: Mapping[str, set[str]] = {
    "workflow_started": {"pending"},
    "step_started": {"in_progress"},
    "step_failed": {"in_progress", "awaiting"},
    "step_completed": {"in_progress"},
    "workflow_awaiting": {"awaiting"},
    "workflow_slept": {"sleeping"},
    "workflow_completed": {"completed"},
    "workflow_compensating": {"compensating"},
    "workflow_failed": {"failed"},
    "workflow_compensated": {"compensated"},
    "workflow_cancelled": {"cancelled"},
    "workflow_retried": {"in_progress", "awaiting", "compensating"},
}
"""The statuses that an event of the kind may set; kinds that are not named may set none."""

KINDS = frozenset(STATUS_AFTER) | {
    "step_timed_out",
    "signal_received",
    "compensation_started",
    "compensation_attempt_failed",
    "step_compensated",
    "compensation_failed",
    "workflow_paused",
    "workflow_resumed",
    "cancel_requested",
    "version_changed",
    "request_denied",
}
FORWARD = frozenset(
    {
        "step_started",
        "step_completed",
        "step_failed",
        "step_timed_out",
        "signal_received",
        "workflow_awaiting",
        "workflow_slept",
        "workflow_completed",
    }
)
"""What moves the instance on, or tries to."""
UNDOING = frozenset({"compensation_started", "compensation_attempt_failed", "step_compensated", "compensation_failed"})
BODY_OUTCOMES = frozenset({"step_completed", "workflow_awaiting", "workflow_slept"})
"""What a handler's success leaves behind."""

BY_THE_ENGINE = frozenset({"Poison", "Timeout", "LeaseExpired"})
"""Types of failures that no attempt of the user's code reported."""

BEGINNING: Row = {
    "definition_version": 1,
    "step_sequence": [],
    "step_index": 0,
    "current_step": "",
    "visit": 0,
    "visits_since_park": 0,
    "status": "",
    "ends_as": "",
    "context": {},
    "result": None,
    "error": None,
    "attempts": 0,
    "awaiting_signals": [],
    "handling": "",
    "due_at": None,
    "deadline_at": None,
    "lease_token": 0,
    "lease_owner": "",
    "cancel_requested": None,
    "paused": False,
    "compensation_stack": [],
    "started_at": None,
    "status_changed_at": None,
    "finished_at": None,
}
"""Every journalled column, before anything happened."""


class Moment(NamedTuple):
    """One event, and the instance as it was before and is after it."""

    before: Row
    event: Row
    after: Row

    @property
    def kind(self) -> str:
        """Of the event."""
        return str(self.event["kind"])


def replay(history: Sequence[Row]) -> Iterator[Moment]:
    """Go through a history event by event."""
    state = BEGINNING
    for event in history:
        after = _apply(state, event)
        yield Moment(state, event, after)
        state = after


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1, 1.0 and true are three things; a moment is the same in every zone."""
    return _text(one) == _text(other)


def _apply(state: Row, event: Row) -> Row:
    effects = event["data"]
    after = dict(state)
    for name, value in effects.get("set", {}).items():
        after[name] = datetime.fromisoformat(value) if name in {"due_at", "deadline_at"} and value else value
    if effects.get("updates"):
        after["context"] = {**after["context"], **effects["updates"]}
    if effects.get("undo"):
        after["compensation_stack"] = _merged(after["compensation_stack"], effects["undo"])
    if after["status"] != state["status"]:
        after["status_changed_at"] = event["created_at"]
        after["finished_at"] = event["created_at"] if after["status"] in TERMINAL else None
        if after["status"] != "pending":
            after["started_at"] = after["started_at"] or event["created_at"]
    return after


def _merged(stack: Sequence[Row], entry: Row) -> list[Row]:
    """There is one entry per visit: it is brought up to date, or comes on top."""
    if all(old["visit"] != entry["visit"] for old in stack):
        return [*stack, entry]
    return [{**old, **entry} if old["visit"] == entry["visit"] else old for old in stack]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=_moment)


def _moment(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
