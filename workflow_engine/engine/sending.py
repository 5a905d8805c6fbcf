"""Writing into the mailbox: every word from outside is one INSERT in the caller's transaction.

It never waits for the instance's lock, so a sender can't be blocked by a running step nor deadlock with one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from workflow_engine import clock, conf, serialization
from workflow_engine.after_commit import Effects
from workflow_engine.domain.decisions.requests import why_not
from workflow_engine.engine import store
from workflow_engine.engine.addressing import Addressed, actor_name, database_of, load
from workflow_engine.engine.infrastructure import run_joined
from workflow_engine.engine.keys import checked_key, find_or_insert
from workflow_engine.engine.routing import queue_of
from workflow_engine.exceptions import (
    IdempotencyConflictError,
    InvalidStateError,
    NoLiveInstanceError,
    SignalNotAwaitedError,
)
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.models.identifiers import key_hash
from workflow_engine.models.querysets import Subject, subject_reference

Kind = WorkflowSignal.Kind
_NAME_LIMIT = 200
_REVERSES: dict[str, Kind] = {Kind.RESUME: Kind.PAUSE, Kind.PAUSE: Kind.RESUME}


@dataclass(slots=True)
class _Sent:
    items: list[WorkflowSignal]
    message: _Message
    effects: Effects
    using: str

    def was_committed(self) -> bool:
        """Whether the rows are there. The time tells them from others that got their ids after a crash of the server.

        If not, the next try uses the same ids: should this COMMIT still be on its way, the two meet.
        """
        rows = WorkflowSignal.objects.using(self.using)
        if all(rows.filter(pk=item.pk, received_at=item.received_at).exists() for item in self.items):
            return True
        self.message.ids_in_doubt.update({item.instance_id: item.pk for item in self.items})
        return False

    def finish(self) -> None:
        """Run the effects, if the commit hook has not."""
        self.effects.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    kind: WorkflowSignal.Kind
    name: str
    data: Any
    actor: str
    idempotency_key: str | None = None
    ids_in_doubt: dict[UUID, int] = field(default_factory=dict)

    def key_hash(self, row: WorkflowInstance) -> str | None:
        return None if self.idempotency_key is None else key_hash(str(row.pk), self.idempotency_key)


def signal(
    instance: Addressed,
    name: str,
    data: Any = None,
    *,
    idempotency_key: str | None = None,
    actor: Any = None,
    using: str | None = None,
) -> WorkflowSignal:
    """Send a signal: stored in the caller's transaction, consumed at most once, by the oldest wait that wants it.

    A signal that nothing awaits yet is kept for later. The same idempotency key (per instance) returns the first row.

    Args:
        instance: or its id.
        name: what happened, e.g. "payment_succeeded".
        data: anything that passes the JSON gate.
        idempotency_key: the sender's name for this event, which its repetition will use again.
        actor: who sends it: a user or a text, for the history.
        using: the database alias; by default the router decides.

    Raises:
        InstanceNotFoundError: there is no such instance.
        InvalidStateError: it has ended.
        SignalNotAwaitedError: strict mode, and it does not await that signal.
        NotSerializableError: the data or the name can't be stored.
        IdempotencyConflictError: the key was used with another name or other data.
    """
    alias = database_of(instance, using)
    row = load(instance, alias)
    message = _signal_message(name, data, idempotency_key, actor)
    return _send([row], message, alias)[0]


def signal_subject(
    subject: Subject,
    name: str,
    data: Any = None,
    *,
    idempotency_key: str | None = None,
    actor: Any = None,
    using: str | None = None,
) -> list[WorkflowSignal]:
    """Send a signal to every live instance of a subject, all or none; for webhooks, which know the order only.

    Args and further errors: as `signal`.

    Raises:
        NoLiveInstanceError: there is none, so a webhook should answer with an error and be called again.
    """
    alias = database_of(None, using)
    message = _signal_message(name, data, idempotency_key, actor)
    of_subject = WorkflowInstance.objects.using(alias).for_subject(subject)
    rows = list(of_subject.live().order_by("pk"))
    if not rows:
        # A repetition of what an instance took before it ended is answered like the first time.
        rows = [row for row in of_subject.order_by("pk") if _first(row, message, alias)]
    if not rows:
        raise NoLiveInstanceError(*subject_reference(subject), name)
    return _send(rows, message, alias)


def cancel(
    instance: Addressed, *, reason: str = "", compensate: bool = True, actor: Any = None, using: str | None = None
) -> WorkflowSignal:
    """Ask for an end: the steps done so far are undone (unless `compensate` is False), and it ends `cancelled`.

    While an activity is running, that takes effect when it is recorded or its lease ends.

    Raises:
        InstanceNotFoundError: there is no such instance.
        InvalidStateError: it has ended, or is being undone already.
    """
    return _request(Kind.CANCEL, instance, {"reason": reason, "compensate": compensate}, actor, using)


def pause(instance: Addressed, *, reason: str = "", actor: Any = None, using: str | None = None) -> WorkflowSignal:
    """Ask for a pause: no step starts until `resume()`; signals are kept, a running activity is still recorded.

    Raises:
        InstanceNotFoundError: there is no such instance.
        InvalidStateError: it has ended, or is paused.
    """
    return _request(Kind.PAUSE, instance, {"reason": reason}, actor, using)


def resume(instance: Addressed, *, reason: str = "", actor: Any = None, using: str | None = None) -> WorkflowSignal:
    """Ask a paused instance to go on where it stood; what became due meanwhile is due now.

    It may be asked right after `pause()`, before anybody has looked at that.

    Raises:
        InstanceNotFoundError: there is no such instance.
        InvalidStateError: it has ended, or is not paused and nobody has asked for that.
    """
    return _request(Kind.RESUME, instance, {"reason": reason}, actor, using)


def retry(instance: Addressed, *, reason: str = "", actor: Any = None, using: str | None = None) -> WorkflowSignal:
    """Ask a failed instance to try again: its failed step in the same visit, with the same idempotency key and fresh
    attempts; or its unfinished undos, if those are what failed.

    Raises:
        InstanceNotFoundError: there is no such instance.
        InvalidStateError: it is not failed.
    """
    return _request(Kind.RETRY, instance, {"reason": reason}, actor, using)


def _request(
    kind: WorkflowSignal.Kind, instance: Addressed, data: dict[str, Any], actor: Any, using: str | None
) -> WorkflowSignal:
    alias = database_of(instance, using)
    row = load(instance, alias)
    payload = {**data, "reason": serialization.clean_text(data["reason"])}
    message = _Message(kind=kind, name=kind.value, data=payload, actor=actor_name(actor))
    return _send([row], message, alias)[0]


def _signal_message(name: Any, data: Any, idempotency_key: str | None, actor: Any) -> _Message:
    return _Message(
        kind=Kind.SIGNAL,
        name=serialization.short_text(name, "signal name", _NAME_LIMIT),
        data=serialization.to_json(data, "signal data"),
        actor=actor_name(actor),
        idempotency_key=checked_key(idempotency_key),
    )


def _send(rows: list[WorkflowInstance], message: _Message, using: str) -> list[WorkflowSignal]:
    """Insert one row per instance, all or none."""
    return run_joined(using, partial(_insert_all, rows, message, using)).items


def _insert_all(rows: list[WorkflowInstance], message: _Message, using: str) -> _Sent:
    effects = Effects(using)
    items = [_insert(row, message, effects, using) for row in rows]
    effects.register()
    return _Sent(items, message, effects, using)


def _insert(row: WorkflowInstance, message: _Message, effects: Effects, using: str) -> WorkflowSignal:
    if first := _first(row, message, using):
        return first
    _check_acceptable(row, message, using)

    def insert() -> WorkflowSignal:
        return WorkflowSignal.objects.using(using).create(
            id=message.ids_in_doubt.get(row.pk),
            instance_id=row.pk,
            kind=message.kind,
            name=message.name,
            data=message.data,
            actor=message.actor,
            idempotency_key=message.idempotency_key,
            key_hash=message.key_hash(row),
            received_at=clock.now(using),
        )

    with around("mailbox"):
        item, is_new = find_or_insert(WorkflowSignal, message.key_hash(row), insert, using)
    if not is_new:
        _check_same(row, item, message)
    effects.wake(row.pk, queue_of(row))
    return item


def _first(row: WorkflowInstance, message: _Message, using: str) -> WorkflowSignal | None:
    """The row that this message's key already has for the instance."""
    hashed = message.key_hash(row)
    item = None if hashed is None else WorkflowSignal.objects.using(using).filter(key_hash=hashed).first()
    if item is not None:
        _check_same(row, item, message)
    return item


def _check_acceptable(row: WorkflowInstance, message: _Message, using: str) -> None:
    """Against what is visible: what can't be used is refused at once. What changes meanwhile is sorted out later."""
    state = store.state_of(row)
    reason = why_not(state, message.kind)
    if reason and (state.is_terminal or not _reverses_what_is_pending(row, message, using)):
        status = f"{row.status} and paused" if row.paused else row.status
        raise InvalidStateError(row.pk, status, message.kind, reason)
    strict = message.kind == Kind.SIGNAL and not conf.current().SIGNALS_BUFFER_EARLY
    if strict and message.name not in row.awaiting_signals:
        raise SignalNotAwaitedError(row.pk, message.name, row.awaiting_signals)


def _reverses_what_is_pending(row: WorkflowInstance, message: _Message, using: str) -> bool:
    """A pause may be taken back, and a resumption too, before anybody has looked at it."""
    reversed_kind = _REVERSES.get(message.kind)
    of_instance = WorkflowSignal.objects.using(using).pending().filter(instance_id=row.pk)
    return reversed_kind is not None and of_instance.filter(kind=reversed_kind).exists()


def _check_same(row: WorkflowInstance, item: WorkflowSignal, message: _Message) -> None:
    same = item.name == message.name and serialization.canonical(item.data) == serialization.canonical(message.data)
    if not same:
        raise IdempotencyConflictError(str(message.idempotency_key), row, f"another signal, {item.name!r} #{item.pk}")
