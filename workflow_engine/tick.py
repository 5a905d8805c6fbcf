"""Tick: hand out again what is due and nobody works on. For dispatchers that push; safe to run any number of times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from workflow_engine import clock, conf
from workflow_engine.dispatch import dispatcher, wake
from workflow_engine.engine import store
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.locking import lock
from workflow_engine.engine.turns import Advanced, Answer
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance, WorkflowSignal

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Ticked:
    """What one tick did. `failed` dispatches are tried again by the next one."""

    handed_out: int
    woken: int
    failed: int


def tick(using: str) -> Ticked:
    """Hand every due instance to the dispatcher, and every one whose mail has waited for longer than an interval.

    Each is marked with a grace under its lock before it is handed out, so N ticks at once hand it out once. A row that
    is locked is being worked on and needs no help. With a dispatcher that polls there is nothing to hand out.
    """
    if not dispatcher().pushes:
        return Ticked(0, 0, 0)
    counts = {"handed_out": 0, "woken": 0, "failed": 0}
    for kind, instance_id in _candidates(using):
        handed = run_outermost(using, partial(_mark, instance_id, using, mail=kind == "woken"))
        if handed.more:
            with around("tick"):
                sent = wake(instance_id, queue=handed.queue, using=using)
            counts[kind if sent else "failed"] += 1
    return Ticked(**counts)


@dataclass(slots=True)
class _Marked(Advanced):
    queue: str = ""


def _mark(instance_id: UUID, using: str, *, mail: bool) -> _Marked:
    locked = lock(instance_id, using)
    if locked is None:
        return _Marked(Answer.LOCKED, instance_id, using)
    row, now = locked
    due = row.poll_at is not None and row.poll_at <= now
    mail_waits = mail and not row.is_terminal and not row.paused
    if not due and not mail_waits:
        # Mail of an instance that is paused or has ended is only sorted; that needs no grace.
        return _Marked(Answer.NOT_DUE, instance_id, using, more=mail, queue=row.queue)
    held_too_long = due and row.poll_at != row.due_at
    grace = now + conf.current().duration("GRACE")
    store.update(row, poll_at=grace, suspect=row.suspect or held_too_long or mail_waits)
    return _Marked(Answer.ADVANCED, instance_id, using, more=True, queue=row.queue)


def _candidates(using: str) -> Iterator[tuple[str, UUID]]:
    """Ids only, page by page: a page that is handed out is no longer due, one that could not be is stepped over."""
    now = clock.now(using)
    for instance_id in _due(now, using):
        yield "handed_out", instance_id
    aged = now - conf.current().duration("TICK_INTERVAL")
    pending = WorkflowSignal.objects.using(using).pending().filter(received_at__lte=aged)
    for instance_id in pending.order_by("received_at").values_list("instance_id", flat=True)[:_PAGE]:
        yield "woken", instance_id


def _due(now: datetime, using: str) -> Iterator[UUID]:
    rows = WorkflowInstance.objects.using(using).due(now)
    last: tuple[datetime, UUID] | None = None
    while True:
        page = rows if last is None else rows.after(*last)
        found = [(poll_at, pk) for poll_at, pk in page.values_list("poll_at", "pk")[:_PAGE] if poll_at is not None]
        yield from (instance_id for _, instance_id in found)
        if len(found) < _PAGE:
            return
        last = found[-1]
