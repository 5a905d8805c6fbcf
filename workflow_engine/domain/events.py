"""What can happen to an instance: the kinds of history entries, and one entry as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class EventKind(StrEnum):
    """Kinds of events. Those with the name of a Django signal are also sent as that signal after commit."""

    WORKFLOW_STARTED = "workflow_started"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    STEP_FAILED = "step_failed"
    STEP_TIMED_OUT = "step_timed_out"
    SIGNAL_RECEIVED = "signal_received"
    WORKFLOW_AWAITING = "workflow_awaiting"
    WORKFLOW_SLEPT = "workflow_slept"
    WORKFLOW_COMPLETED = "workflow_completed"
    WORKFLOW_COMPENSATING = "workflow_compensating"
    COMPENSATION_STARTED = "compensation_started"
    COMPENSATION_ATTEMPT_FAILED = "compensation_attempt_failed"
    STEP_COMPENSATED = "step_compensated"
    COMPENSATION_FAILED = "compensation_failed"
    WORKFLOW_FAILED = "workflow_failed"
    WORKFLOW_COMPENSATED = "workflow_compensated"
    WORKFLOW_CANCELLED = "workflow_cancelled"
    WORKFLOW_RETRIED = "workflow_retried"
    WORKFLOW_PAUSED = "workflow_paused"
    WORKFLOW_RESUMED = "workflow_resumed"
    CANCEL_REQUESTED = "cancel_requested"
    VERSION_CHANGED = "version_changed"
    REQUEST_DENIED = "request_denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of the history.

    `changes`, `updates` and `undo` are all that it does to the instance (see `state.apply`); `data` is what it tells.
    """

    kind: EventKind
    at: datetime
    step: str
    visit: int
    attempt: int = 0
    actor: str = ""
    trigger: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    updates: Mapping[str, Any] = field(default_factory=dict)
    undo: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    duration: timedelta | None = None
