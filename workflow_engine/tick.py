"""Tick: hand out again what is due and nobody works on. For dispatchers that push; safe to run any number of times."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from workflow_engine import clock, conf
from workflow_engine.dispatch import NO_DELAY, dispatcher, wake
from workflow_engine.engine import store
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.locking import lock
from workflow_engine.engine.turns import Advanced, Answer
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance, WorkflowSignal, WorkflowWorker

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Ticked:
    """What one tick did. `failed` dispatches are tried again by the next one."""

    handed_out: int = 0
    woken: int = 0
    failed: int = 0


@dataclass(slots=True)
class _Marked(Advanced):
    """An instance that this tick, and no other, hands out."""

    delay: timedelta = NO_DELAY


def tick(using: str) -> Ticked:
    """Hand every due instance to the dispatcher, and every one whose mail has waited for longer than an interval.

    What becomes due before the next tick is handed out now with that delay, so that timers are not late by up to an
    interval. Each instance is marked with a grace under its lock before it is handed out: N ticks at once hand it out
    once. A row that is locked is being worked on and needs no help. With a dispatcher that polls there is nothing to
    hand out.
    """
    _note_seen(using)
    if not dispatcher().pushes:
        return Ticked()
    counts = {"handed_out": 0, "woken": 0, "failed": 0}
    for kind, instance_id in _candidates(using):
        marked = run_outermost(using, partial(_mark, instance_id, using, mail=kind == "woken"))
        if marked.more:
            with around("tick"):
                sent = wake(instance_id, queue=marked.queue, using=using, delay=marked.delay)
            counts[kind if sent else "failed"] += 1
    return Ticked(**counts)


def _mark(instance_id: UUID, using: str, *, mail: bool) -> _Marked:
    locked = lock(instance_id, using)
    if locked is None:
        return _Marked(Answer.LOCKED, instance_id, using)
    row, now = locked
    poll_at = row.poll_at
    due = poll_at is not None and poll_at <= now + conf.current().duration("TICK_INTERVAL")
    if mail and (row.is_terminal or row.paused):
        # Its mail is only sorted, which runs no user's code: nothing to suspect, no grace.
        return _Marked(Answer.NOT_DUE, instance_id, using, more=True, queue=row.queue)
    if not due and not mail:
        return _Marked(Answer.NOT_DUE, instance_id, using)
    delay = NO_DELAY if mail or poll_at is None else max(poll_at - now, NO_DELAY)
    # Handed out before and nothing came of it; or mail that somebody was woken for, and nothing came of that.
    silent = mail or poll_at != row.due_at
    store.update(row, poll_at=now + delay + conf.current().duration("GRACE"), suspect=row.suspect or silent)
    return _Marked(Answer.ADVANCED, instance_id, using, more=True, queue=row.queue, delay=delay)


def _candidates(using: str) -> Iterator[tuple[str, UUID]]:
    """Ids only, page by page."""
    now = clock.now(using)
    interval = conf.current().duration("TICK_INTERVAL")
    for instance_id in _due(now + interval, using):
        yield "handed_out", instance_id
    pending = WorkflowSignal.objects.using(using).pending().filter(received_at__lte=now - interval)
    ids = pending.order_by("received_at").values_list("instance_id", flat=True)
    for instance_id in dict.fromkeys(ids[:_PAGE]):
        yield "woken", instance_id


def _due(until: datetime, using: str) -> Iterator[UUID]:
    """Keyset pages over everything due: a row that nobody can take is stepped over, never waited for."""
    rows = WorkflowInstance.objects.using(using).due(until)
    page = rows
    while True:
        found = [(poll_at, pk) for poll_at, pk in page.values_list("poll_at", "pk")[:_PAGE] if poll_at is not None]
        yield from (instance_id for _, instance_id in found)
        if len(found) < _PAGE:
            return
        page = rows.after(*found[-1])


def _note_seen(using: str) -> None:
    """Ticks come and go; what health wants to know is when the last one ran."""
    now = clock.now(using)
    workers = WorkflowWorker.objects.using(using)
    host = socket.gethostname()[:255]
    if not workers.filter(kind=WorkflowWorker.Kind.TICK, host=host).update(seen_at=now):
        workers.create(kind=WorkflowWorker.Kind.TICK, host=host, pid=0, knows=[], started_at=now, seen_at=now)
