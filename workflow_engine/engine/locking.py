"""The row lock: the first statement of every engine transaction, with the clock read in the same query."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connections

from workflow_engine import clock
from workflow_engine.clock import DatabaseNow
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance


class Locked(NamedTuple):
    """A row under this transaction's lock, and the database's time at which the lock was held."""

    row: WorkflowInstance
    now: datetime


def lock(instance_id: UUID, using: str) -> Locked | None:
    """Lock one instance by its key, without waiting where the database can skip; None if it is locked or gone.

    On PostgreSQL the lock is FOR NO KEY UPDATE, so that inserting a signal for the instance never waits for it. SQLite
    has no row locks: there BEGIN IMMEDIATE excludes every other writer.
    """
    return _lock(instance_id, using, skip_locked=connections[using].features.has_select_for_update_skip_locked)


def lock_waiting(instance_id: UUID, using: str) -> Locked | None:
    """Like `lock`, but wait for whoever has the row: for news that must be recorded. None if it is gone.

    The time is read again after the wait: PostgreSQL and MySQL work it out before they wait for the lock.
    """
    locked = _lock(instance_id, using, skip_locked=False)
    return None if locked is None else locked._replace(now=clock.now(using))


def _lock(instance_id: UUID, using: str, *, skip_locked: bool) -> Locked | None:
    no_key = connections[using].features.has_select_for_no_key_update
    rows = WorkflowInstance.objects.using(using).select_for_update(skip_locked=skip_locked, no_key=no_key)
    with around("lock"):
        row = rows.annotate(locked_at=DatabaseNow()).filter(pk=instance_id).first()
    if row is None:
        return None
    locked_at: datetime = vars(row).pop("locked_at")
    return Locked(row, locked_at)
