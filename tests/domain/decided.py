"""A state to decide on, and what was decided: the events as pairs of their kind and what each one changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from workflow_engine.domain.events import Event
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.received import Signal
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import Status

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GO = Signal(id=7, name="go", data={"a": 1}, actor="riley", received_at=NOON)
STEPS = ("one", "two", "three")


def on_step(step: str = "one", *, attempt: int = 1, **changes: Any) -> Journal:
    """A sheet for a decision at noon about an instance that is in `step`, in its visit 5, attempt number `attempt`."""
    state = State(
        step_sequence=STEPS,
        step_index=STEPS.index(step),
        current_step=step,
        visit=5,
        visits_since_park=5,
        status=changes.pop("status", Status.IN_PROGRESS),
        due_at=changes.pop("due_at", NOON),
        started_at=NOON,
        status_changed_at=NOON,
        **changes,
    )
    return Journal(state, NOON, attempt=attempt)


def waiting(*names: str, **changes: Any) -> Journal:
    """A sheet about an instance whose first step awaits these signals."""
    return on_step(status=Status.AWAITING, awaiting_signals=list(names or ["go"]), **changes)


def decided(journal: Journal) -> list[tuple[str, dict[str, Any]]]:
    """The events on the sheet."""
    return [(event.kind.value, told(event)) for event in journal.events]


def told(event: Event) -> dict[str, Any]:
    """What one event changes."""
    undo = {"undo": dict(event.undo)} if event.undo is not None else {}
    updates = {"updates": dict(event.updates)} if event.updates else {}
    return {**event.changes, **updates, **undo}


def kinds(journal: Journal) -> list[str]:
    return [event.kind.value for event in journal.events]
