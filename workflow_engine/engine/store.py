"""Rows to states and back: how a decision is written, guarded, and how history is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Model

from workflow_engine.domain.events import Event, EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.state import FIELDS, State, fold
from workflow_engine.domain.statuses import Status
from workflow_engine.exceptions import StaleWriteError
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowEvent, WorkflowInstance

_TIMES = ("due_at", "deadline_at")


def state_of(row: WorkflowInstance) -> State:
    """The journalled part of a row."""
    state = State(**{name: getattr(row, name) for name in FIELDS})
    return replace(state, status=Status(row.status))


def write(row: WorkflowInstance, journal: Journal, **bookkeeping: Any) -> list[WorkflowEvent]:
    """Write a decision under the row's lock: one guarded UPDATE with what changed, then the events.

    `row` is brought up to date. Entries that change nothing (a denied request) leave the row's version as it is.

    Args:
        row: as read under the lock.
        journal: the decision.
        bookkeeping: columns that are not journalled and their new values.

    Raises:
        StaleWriteError: the row's version is not what was read, so the lock did not hold; nothing is written.
    """
    changed = _changed_columns(row, journal.state)
    denied_only = all(event.kind == EventKind.REQUEST_DENIED for event in journal.events)
    values = {**changed, **bookkeeping, "last_seq": row.last_seq + len(journal.events)}
    if not denied_only:
        values["version"] = row.version + 1
    events = [_stored(row, number, event) for number, event in enumerate(journal.events, row.last_seq + 1)]
    with around("save"):
        update(row, **values)
    with around("history"):
        WorkflowEvent.objects.using(row._state.db).bulk_create(events)
    return events


def update(row: WorkflowInstance, **values: Any) -> None:
    """One UPDATE guarded by the version that was read; `row` gets the values too.

    Raises:
        StaleWriteError: the row's version is another one.
    """
    rows = WorkflowInstance.objects.using(row._state.db)
    if rows.filter(pk=row.pk, version=row.version).update(**values) != 1:
        raise StaleWriteError(row.pk, row.version)
    for name, value in values.items():
        setattr(row, name, value)


def insert(row: WorkflowInstance, journal: Journal, using: str) -> list[WorkflowEvent]:
    """Insert a new row as the journal's first event makes it, and that event."""
    for name, value in _changed_columns(row, journal.state).items():
        setattr(row, name, value)
    row.last_seq = len(journal.events)
    with around("save"):
        row.save(using=using, force_insert=True)
    events = [_stored(row, number, event) for number, event in enumerate(journal.events, 1)]
    with around("history"):
        return WorkflowEvent.objects.using(using).bulk_create(events)


def read_history(row: WorkflowInstance) -> list[Event]:
    """The instance's events as values, in order."""
    return [_loaded(event) for event in row.events.order_by("seq")]


def folded(row: WorkflowInstance) -> State:
    """What the history says the row is."""
    return fold(read_history(row))


def comparable(state: State) -> dict[str, Any]:
    """A state in a form in which a row and the fold of its history are equal.

    A live lease's due_at is left out: heartbeats move it without leaving an event.
    """
    values = {name: _plain(getattr(state, name)) for name in FIELDS}
    if state.lease_owner:
        del values["due_at"]
    return values


def _changed_columns(row: Model, state: State) -> dict[str, Any]:
    values = {name: _plain(getattr(state, name)) for name in FIELDS}
    return {name: value for name, value in values.items() if _differ(_plain(getattr(row, name)), value)}


def _differ(old: Any, new: Any) -> bool:
    """Equal values can be different JSON: 1, 1.0 and true."""
    return old is not new and repr(old) != repr(new)


def _stored(row: WorkflowInstance, number: int, event: Event) -> WorkflowEvent:
    effects = {"set": _json_changes(event.changes), "updates": dict(event.updates), "undo": event.undo}
    return WorkflowEvent(
        instance_id=row.pk,
        seq=number,
        kind=event.kind,
        step=event.step,
        visit=event.visit,
        attempt=event.attempt,
        actor=event.actor,
        trigger=event.trigger,
        data={**event.data, **{key: value for key, value in effects.items() if value}},
        created_at=event.at,
        duration=event.duration,
    )


def _loaded(stored: WorkflowEvent) -> Event:
    data = dict(stored.data)
    changes = dict(data.pop("set", {}))
    changes |= {name: datetime.fromisoformat(changes[name]) for name in _TIMES if changes.get(name)}
    return Event(
        kind=EventKind(stored.kind),
        at=stored.created_at,
        step=stored.step,
        visit=stored.visit,
        attempt=stored.attempt,
        actor=stored.actor,
        trigger=stored.trigger,
        changes=changes,
        updates=data.pop("updates", {}),
        undo=data.pop("undo", None),
        data=data,
        duration=stored.duration,
    )


def _json_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else _plain(value) for name, value in changes.items()
    }


def _plain(value: Any) -> Any:
    """A status as the string that the database keeps; drivers differ on what they make of an enum."""
    return value.value if isinstance(value, Status) else value
