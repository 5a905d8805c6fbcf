"""The row lock: the first statement of every engine transaction, with the clock read in the same query."""

from __future__ import annotations

from datetime import datetime
from functools import cache
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
    key = WorkflowInstance._meta.pk.get_db_prep_value(instance_id, connections[using])
    with around("lock"):
        rows = list(WorkflowInstance.objects.using(using).raw(_lock_sql(using, skip_locked), [key]))
    if not rows:
        return None
    locked_at: str = vars(rows[0]).pop("locked_at")
    return Locked(rows[0], clock.parse(locked_at))


@cache
def _lock_sql(using: str, skip_locked: bool) -> str:  # noqa: FBT001 - part of the cache's key
    """The query's text. The ORM writes it once per process: it is run for every turn, and writing it costs more CPU
    than all other statements of a turn together.
    """
    no_key = connections[using].features.has_select_for_no_key_update
    rows = WorkflowInstance.objects.using(using).select_for_update(skip_locked=skip_locked, no_key=no_key)
    query = rows.annotate(locked_at=DatabaseNow()).filter(pk=UUID(int=0)).query
    sql: str = query.get_compiler(using).as_sql()[0]
    return sql
