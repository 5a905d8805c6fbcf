"""The tables as they are read, and the history replayed: an own telling of what events mean, beside the engine's.

Nothing here uses the engine's code for folding or deciding: what is checked with it must not be believed by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

Row = Mapping[str, Any]

TERMINAL = {"completed", "failed", "compensated", "cancelled"}

START: Row = {
    "definition_version": 1,
    "step_sequence": [],
    "step_index": 0,
    "current_step": "",
    "visit": 0,
    "visits_since_park": 0,
    "status": "pending",
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
"""Every journalled column before the first event."""


@dataclass(frozen=True)
class Tables:
    """Everything the database says at one moment.

    `effects`: what steps wrote. `limits`: the most attempts of a step, where that is known. `raw`: the rows of each
    table by what the driver gave.
    """

    instances: Mapping[UUID, Row]
    signals: Mapping[int, Row]
    events: Mapping[UUID, Sequence[Row]]
    effects: Sequence[Row] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    raw: Sequence[Mapping[Any, Row]] = ()

    @cached_property
    def moments(self) -> Mapping[UUID, Sequence[Moment]]:
        """The histories, replayed, by instance."""
        return {key: list(replay(history)) for key, history in self.events.items()}

    def mailbox(self, instance_id: UUID) -> list[Row]:
        """The signals and requests of one instance, in order."""
        return [row for _, row in sorted(self.signals.items()) if row["instance_id"] == instance_id]


class Moment(NamedTuple):
    """One event, and the instance as it was before and is after it."""

    before: Row
    event: Row
    after: Row


def replay(history: Sequence[Row]) -> Iterator[Moment]:
    """Go through a history event by event."""
    state = START
    for event in history:
        after = _after(state, event)
        yield Moment(state, event, after)
        state = after


def text(value: Any) -> str:
    """One text per value, so that 1, 1.0 and true are three; moments as such, whatever their zone."""
    return json.dumps(value, sort_keys=True, default=_moment_text)


def moment(value: Any) -> datetime | None:
    """A time column as the row or as an event has it."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _after(state: Row, event: Row) -> Row:
    data = event["data"]
    after = {**state, **data.get("set", {})}
    for name in ("due_at", "deadline_at"):
        after[name] = moment(after[name])
    if data.get("updates"):
        after["context"] = {**state["context"], **data["updates"]}
    if undo := data.get("undo"):
        after["compensation_stack"] = _stack_with(after["compensation_stack"], undo)
    if after["status"] != state["status"] or state["status_changed_at"] is None:
        after["status_changed_at"] = event["created_at"]
        after["finished_at"] = event["created_at"] if after["status"] in TERMINAL else None
        if after["started_at"] is None and after["status"] != "pending":
            after["started_at"] = event["created_at"]
    return after


def _stack_with(stack: Sequence[Row], undo: Row) -> list[Row]:
    if undo["visit"] in {entry["visit"] for entry in stack}:
        return [{**entry, **undo} if entry["visit"] == undo["visit"] else entry for entry in stack]
    return [*stack, undo]


def _moment_text(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
