"""Tick: hand out again what is due and nobody works on. For dispatchers that push; safe to run any number of times."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from workflow_engine import clock, conf
from workflow_engine.dispatch import NO_DELAY, dispatcher
from workflow_engine.engine import advancing
from workflow_engine.engine.handing_out import Job, Wanted, mark, take_back
from workflow_engine.engine.turns import NO_QUEUE, Answer, Mode
from workflow_engine.exceptions import BrokerUnavailableError
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance, WorkflowSignal, WorkflowWorker

logger = logging.getLogger("workflow_engine")

_PAGE = 500


@dataclass(slots=True)
class Ticked:
    """What one tick did. `woken`: of those whose mail had waited. `failed` ones are tried again by the next tick."""

    handed_out: int = 0
    woken: int = 0
    failed: int = 0


def tick(using: str) -> Ticked:
    """Hand every due instance to the dispatcher, and every one whose mail has waited for longer than an interval.

    What becomes due before the next tick is handed out now with that delay, so that timers are not late by up to an
    interval. After an interval's time a tick ends, whatever is left: the next one goes on. N ticks at once hand out
    each instance once. With a dispatcher that polls there is nothing to hand out.

    Raises:
        DatabaseError: the database had trouble for longer than the retries last.
        RuntimeError: the caller has a transaction open.
    """
    _note_seen(using)
    running = _Tick(using)
    if dispatcher().pushes:
        running.run()
    return running.ticked


class _Tick:
    def __init__(self, using: str) -> None:
        self.ticked = Ticked()
        self._using = using
        self._interval = conf.current().duration("TICK_INTERVAL")
        self._ends = time.monotonic() + self._interval.total_seconds()
        self._broker_is_away = False

    def run(self) -> None:
        now = clock.now(self._using)
        for page in _due(now + self._interval, self._using):
            self.ticked.handed_out += self._hand_out(page, self._until_due)
            if self._is_over():
                return
        for page in _with_old_mail(now - self._interval, self._using):
            self.ticked.woken += self._hand_out(page, _if_at_rest) + self._sort_mail(page)
            if self._is_over():
                return

    def _is_over(self) -> bool:
        return self._broker_is_away or time.monotonic() > self._ends

    def _until_due(self, row: WorkflowInstance, now: datetime) -> timedelta | None:
        """Nothing before its time; and who has a row in hand keeps it for all of the time given."""
        if row.poll_at is None or row.poll_at > now + self._interval:
            return None
        if row.poll_at <= now:
            return NO_DELAY
        return row.poll_at - now if row.poll_at == row.due_at else None

    def _hand_out(self, ids: Sequence[UUID], wanted: Wanted) -> int:
        """Mark and dispatch those of the page that are wanted; how many were dispatched."""
        jobs = mark(ids, wanted, self._using)
        sent = 0
        for number, job in enumerate(jobs):
            try:
                sent += self._dispatch(job)
            except BrokerUnavailableError as error:
                logger.warning("The tick ends early, the next one goes on: %s", error)
                self._broker_is_away = True
                self.ticked.failed += len(jobs) - number
                take_back(jobs[number:], self._using)
                break
        return sent

    def _dispatch(self, job: Job) -> bool:
        """Whether it worked. What is wrong with this one alone is logged and keeps no other waiting."""
        try:
            with around("tick"):
                dispatcher().dispatch(job.instance_id, queue=job.queue, using=self._using, delay=job.delay)
        except BrokerUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - any dispatcher's, and logged
            self._failed(job.instance_id, error)
            take_back([job], self._using)
            return False
        return True

    def _sort_mail(self, ids: Sequence[UUID]) -> int:
        """The mail of those that are not handed out: paused, ended, or gone. A request among it may change that."""
        live = WorkflowInstance.objects.using(self._using).live().filter(pk__in=ids, paused=False)
        changed = 0
        for instance_id in set(ids).difference(live.values_list("pk", flat=True)):
            try:
                advanced = advancing.advance(instance_id, self._using, Mode(queue=NO_QUEUE))
                changed += advanced.answer == Answer.ADVANCED
            except Exception as error:  # noqa: BLE001 - logged; no row stops a tick
                self._failed(instance_id, error)
        return changed

    def _failed(self, instance_id: UUID, error: Exception) -> None:
        self.ticked.failed += 1
        logger.error(
            "Handing out workflow instance %s failed; the next tick tries again",
            instance_id,
            exc_info=error,
            extra={"workflow_instance_id": str(instance_id)},
        )


def _if_at_rest(row: WorkflowInstance, now: datetime) -> timedelta | None:  # noqa: ARG001 - it is a Wanted
    """At once, unless it was handed out a moment ago or a driver holds it."""
    return NO_DELAY if row.poll_at in {None, row.due_at} else None


def _due(until: datetime, using: str) -> Iterator[list[UUID]]:
    """Keyset pages over everything due: a row that nobody can take is stepped over, never waited for."""
    rows = WorkflowInstance.objects.using(using).due(until)
    page = rows
    while True:
        found = [(poll_at, pk) for poll_at, pk in page.values_list("poll_at", "pk")[:_PAGE] if poll_at is not None]
        yield [instance_id for _, instance_id in found]
        if len(found) < _PAGE:
            return
        page = rows.after(*found[-1])


def _with_old_mail(until: datetime, using: str) -> Iterator[list[UUID]]:
    """Pages of instances with a signal or request that nobody has looked at."""
    rows = WorkflowSignal.objects.using(using).pending().filter(received_at__lte=until).order_by("received_at", "id")
    page = rows
    while True:
        found = list(page.values_list("received_at", "pk", "instance_id")[:_PAGE])
        yield list(dict.fromkeys(instance_id for _, _, instance_id in found))
        if len(found) < _PAGE:
            return
        received_at, pk, _ = found[-1]
        page = rows.filter(Q(received_at__gt=received_at) | Q(received_at=received_at, pk__gt=pk))


def _note_seen(using: str) -> None:
    """Ticks come and go; what health wants to know is when the last one ran."""
    now = clock.now(using)
    workers = WorkflowWorker.objects.using(using)
    host = socket.gethostname()[:255]
    if not workers.filter(kind=WorkflowWorker.Kind.TICK, host=host).update(seen_at=now):
        workers.create(kind=WorkflowWorker.Kind.TICK, host=host, pid=0, knows=[], started_at=now, seen_at=now)
