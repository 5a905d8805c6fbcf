"""Marking rows as handed out, many at once: each gets a grace, within which nobody else hands it out.

The marks are committed before any message is sent, so that of two ticks at once each row is one's. A row that is locked
is being worked on and is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from uuid import UUID

from django.db import connections
from django.db.models import F

from workflow_engine import clock, conf
from workflow_engine.dispatch import NO_DELAY
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.routing import queue_of
from workflow_engine.models import WorkflowInstance, WorkflowSignal

Wanted = Callable[[WorkflowInstance, datetime], timedelta | None]
"""How long a message for the row, as it is under its lock at that time, has to wait; None if none is to be sent. It
waits either not at all or until the row's `poll_at`.
"""

_COLUMNS = (
    *("workflow_name", "definition_version", "step_sequence", "step_index", "current_step"),
    *("status", "paused", "queue", "version", "due_at", "poll_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A marked row. `before` and `marked` are its poll_at; `wait` counts from when it was marked, `marked_at` by the
    monotonic clock.
    """

    instance_id: UUID
    version: int
    queue: str
    wait: timedelta
    before: datetime | None
    marked: datetime
    marked_at: float

    @property
    def delay(self) -> timedelta:
        """What is left of the wait now: sending those before it may have taken a second."""
        return max(self.wait - timedelta(seconds=clock.monotonic() - self.marked_at), NO_DELAY)


@dataclass(slots=True)
class _Marked:
    using: str
    jobs: list[Job] = field(default_factory=list)

    def was_committed(self) -> bool:
        """Whether the marks are there."""
        rows = WorkflowInstance.objects.using(self.using)
        return not self.jobs or rows.filter(pk=self.jobs[0].instance_id, poll_at=self.jobs[0].marked).exists()

    def finish(self) -> None:
        """The messages are their caller's to send."""


def mark(ids: Sequence[UUID], wanted: Wanted, using: str) -> list[Job]:
    """Mark those of the rows that are wanted, in one transaction; the most urgent comes first.

    Raises:
        RuntimeError: the caller has a transaction open.
    """
    jobs = run_outermost(using, partial(_mark, ids, wanted, using)).jobs if ids else []
    # Who brought mail while these rows were locked has gone away, relying on this look at the mailbox.
    pending = WorkflowSignal.objects.using(using).pending().filter(instance_id__in=[job.instance_id for job in jobs])
    with_mail = set(pending.values_list("instance_id", flat=True))
    jobs = [replace(job, wait=NO_DELAY) if job.instance_id in with_mail else job for job in jobs]
    return sorted(jobs, key=attrgetter("wait"))


def take_back(jobs: Iterable[Job], using: str) -> None:
    """Undo the marks of what could not be sent, unless somebody has written the row since."""
    rows = WorkflowInstance.objects.using(using)
    for job in jobs:
        rows.filter(pk=job.instance_id, version=job.version, poll_at=job.marked).update(poll_at=job.before)


def _mark(ids: Sequence[UUID], wanted: Wanted, using: str) -> _Marked:
    features, rows = connections[using].features, WorkflowInstance.objects.using(using)
    locked = rows.filter(pk__in=ids).select_for_update(
        skip_locked=features.has_select_for_update_skip_locked, no_key=features.has_select_for_no_key_update
    )
    found = list(locked.order_by("pk").only(*_COLUMNS))
    now, grace = clock.now(using), conf.current().duration("GRACE")
    marked_at = clock.monotonic()
    marked, silent = _Marked(using), []
    for row in found:
        if row.is_terminal or row.paused or (delay := wanted(row, now)) is None:
            continue
        if row.poll_at not in {None, row.due_at}:
            # It was handed out or held before, and nothing came of that in time.
            silent.append(row.pk)
        marked.jobs.append(_job(row, delay, now + delay + grace, marked_at))
    at_once = [job.instance_id for job in marked.jobs if not job.wait]
    later = [job.instance_id for job in marked.jobs if job.wait]
    rows.filter(pk__in=silent).update(suspect=True)
    rows.filter(pk__in=at_once).update(poll_at=now + grace)
    rows.filter(pk__in=later).update(poll_at=F("poll_at") + grace)
    return marked


def _job(row: WorkflowInstance, wait: timedelta, marked: datetime, marked_at: float) -> Job:
    return Job(
        instance_id=row.pk,
        version=row.version,
        queue=queue_of(row),
        wait=wait,
        before=row.poll_at,
        marked=marked,
        marked_at=marked_at,
    )
