"""The journalled part of an instance, and the one function that changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from workflow_engine.domain.events import Event
from workflow_engine.domain.statuses import TERMINAL, Status, check_transition


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Every journalled column of an instance. Never mutated: `apply` gives the next one."""

    definition_version: int = 1
    step_sequence: Sequence[str] = field(default_factory=list)
    step_index: int = 0
    current_step: str = ""
    visit: int = 0
    visits_since_park: int = 0
    status: Status = Status.PENDING
    ends_as: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    error: Mapping[str, Any] | None = None
    attempts: int = 0
    awaiting_signals: Sequence[str] = field(default_factory=list)
    handling: str = ""
    due_at: datetime | None = None
    deadline_at: datetime | None = None
    lease_token: int = 0
    lease_owner: str = ""
    cancel_requested: Mapping[str, Any] | None = None
    paused: bool = False
    compensation_stack: Sequence[Mapping[str, Any]] = field(default_factory=list)
    started_at: datetime | None = None
    status_changed_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended (a failed one can still be retried)."""
        return self.status in TERMINAL

    @property
    def is_last_step(self) -> bool:
        """Whether completing the current step completes the workflow."""
        return self.step_index + 1 >= len(self.step_sequence)

    @property
    def remaining_steps(self) -> Sequence[str]:
        """The current step and those after it."""
        return self.step_sequence[self.step_index :]


FIELDS = tuple(f.name for f in fields(State))


def apply(state: State, event: Event) -> State:
    """The state after the event. This is the fold: the engine writes what it gives, and history repeats it.

    Raises:
        IllegalTransitionError: the event moves the status where the table does not allow.
    """
    changes = dict(event.changes)
    if event.updates:
        changes["context"] = {**state.context, **event.updates}
    if event.undo is not None:
        changes["compensation_stack"] = _with_entry(state.compensation_stack, event.undo)
    if "status" in changes:
        changes |= _status_changes(state, Status(changes["status"]), event.at)
    return replace(state, **changes)


def fold(events: Iterable[Event]) -> State:
    """The state after a whole history, from the start event on."""
    state = State()
    for event in events:
        state = apply(state, event)
    return state


def _status_changes(state: State, status: Status, at: datetime) -> dict[str, Any]:
    check_transition(state.status, status)
    changes: dict[str, Any] = {"status": status}
    if status != state.status or state.status_changed_at is None:
        changes["status_changed_at"] = at
        changes["finished_at"] = at if status in TERMINAL else None
        if state.started_at is None and status != Status.PENDING:
            changes["started_at"] = at
    return changes


def _with_entry(stack: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The stack with `entry` merged into the one of its visit, or on top: there is one undo per visit."""
    merged = [{**old, **entry} if old["visit"] == entry["visit"] else old for old in stack]
    return merged if any(old["visit"] == entry["visit"] for old in stack) else [*stack, entry]
