"""A sheet on which a decision is written down: events, and the state they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from workflow_engine.domain.events import Event, EventKind
from workflow_engine.domain.state import State, apply


class Journal:
    """Collects the events of one decision. `state` is always the state after them.

    Args:
        state: the instance as it is.
        now: the database's time of this decision; every event gets it.
        attempt: the number of the attempt the events belong to; 0 where there is none.
        actor: who asked for it; "" for the engine itself.
        trigger: what set it off, e.g. "signal:12", "timer", "timeout".
        duration: how long the user's code ran.
    """

    def __init__(
        self,
        state: State,
        now: datetime,
        *,
        attempt: int = 0,
        actor: str = "",
        trigger: str = "",
        duration: timedelta | None = None,
    ) -> None:
        self.state = state
        self.now = now
        self.attempt = attempt
        self.actor = actor
        self.trigger = trigger
        self.duration = duration
        self.events: list[Event] = []

    def add(
        self,
        kind: EventKind,
        *,
        updates: Mapping[str, Any] | None = None,
        undo: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        """Append an event about the current step (or that of `undo`), and move on to the state it leads to.

        Args:
            kind: what happened.
            updates: merged into the context.
            undo: merged into the compensation stack's entry of its visit.
            data: what the event tells beside what it changes.
            changes: journalled columns and their new values; those that stay as they are leave no trace.
        """
        event = Event(
            kind=kind,
            at=self.now,
            step=undo["step"] if undo else self.state.current_step,
            visit=undo["visit"] if undo else self.state.visit,
            attempt=self.attempt,
            actor=self.actor,
            trigger=self.trigger,
            changes={name: value for name, value in changes.items() if self._is_news(name, value)},
            updates=updates or {},
            undo=undo,
            data=data or {},
            duration=self.duration,
        )
        self.state = apply(self.state, event)
        self.events.append(event)

    def _is_news(self, name: str, value: Any) -> bool:
        """A status is always told: the first event's has to be dated even though it is the default."""
        return name == "status" or getattr(self.state, name) != value
