"""One worker: look for due instances, hold one, drive it, look again."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections

from workflow_engine import clock, conf
from workflow_engine.domain.registry import registry
from workflow_engine.engine import advancing, claims
from workflow_engine.engine.connections import limit_idle_transactions
from workflow_engine.engine.driving import A_MOMENT, Driven, drive_patiently
from workflow_engine.engine.infrastructure import is_infrastructure
from workflow_engine.engine.turns import Answer, Mode
from workflow_engine.models import WorkflowInstance, WorkflowSignal, WorkflowWorker
from workflow_engine.worker.registration import Registration

logger = logging.getLogger("workflow_engine")

Report = Callable[[UUID, Driven], None]
"""Told after each instance that was driven."""

_BATCH = 20
_TROUBLE_LIMIT = 30
_LONGEST_PAUSE = 30.0
_PATIENCE_WITH_WHAT_IS_HELD = (*A_MOMENT, 0.2, 0.5)
"""Longer than a message's: nobody else comes for it, and who holds it keeps the others away."""


class Worker:
    """Drives due instances of one database until it is stopped, or (`burst`) until nothing is due.

    Any number of workers, on any number of machines, may share a database: each instance is held by one at a time.

    Args:
        using: the database alias.
        report: told after each instance that was driven.
    """

    def __init__(self, using: str = "default", *, report: Report | None = None) -> None:
        self.using = using
        self._report = report
        self._stopping = threading.Event()
        self._registration = Registration(WorkflowWorker.Kind.WORKER, using)

    def stop(self) -> None:
        """End after the current step; what is held is given back. Safe to call from a signal handler."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def run(self, *, burst: bool = False) -> int:
        """Work until stopped; with `burst`, until nothing is due.

        Returns:
            How many instances were driven.

        Raises:
            DatabaseError: the database could not be reached for many rounds in a row; a supervisor should restart.
        """
        limit_idle_transactions(self.using)
        driven, trouble = 0, 0
        try:
            while not self.stopping:
                try:
                    found = self._round()
                    trouble = 0
                except (DatabaseError, InterfaceError) as error:
                    trouble += 1
                    self._endure(error, trouble)
                    continue
                driven += found
                if not found and burst:
                    break
                if not found:
                    self._stopping.wait(conf.current().duration("POLL_INTERVAL").total_seconds())
        finally:
            self._registration.end()
        return driven

    def _round(self) -> int:
        """One look at the tables. A connection that broke or grew old is replaced first."""
        if not connections[self.using].in_atomic_block:
            connections[self.using].close_if_unusable_or_obsolete()
        self._registration.renew()
        return sum(self._work_on(instance_id) for instance_id in self._candidates() if not self.stopping)

    def _candidates(self) -> Iterable[UUID]:
        """Ids of what is due here and of who has mail; in random order, so that workers don't queue for one row."""
        known = WorkflowInstance.objects.using(self.using).filter(workflow_name__in=registry.names())
        due = known.due(clock.now(self.using)).values_list("pk", flat=True)[:_BATCH]
        pending = WorkflowSignal.objects.using(self.using).pending().order_by("received_at")
        ids = {*due, *pending.values_list("instance_id", flat=True)[:_BATCH]}
        return random.sample(sorted(ids), len(ids))

    def _work_on(self, instance_id: UUID) -> bool:
        """Hold and drive one instance; False if nothing could be done with it."""
        held = claims.hold(instance_id, self.using)
        if held in {Answer.PAUSED, Answer.ENDED, Answer.GONE}:
            # Nobody holds it, but its mail still has to be sorted: a request may resume or retry it.
            sorted_mail = advancing.advance(instance_id, self.using, Mode())
            return sorted_mail.answer == Answer.ADVANCED
        if held != Answer.ADVANCED:
            return False
        stopping = self._stopping
        driven = drive_patiently(
            instance_id, self.using, stop=stopping.is_set, pauses=_PATIENCE_WITH_WHAT_IS_HELD, wait=stopping.wait
        )
        self._registration.renew()
        if self._report is not None:
            self._report(instance_id, driven)
        return True

    def _endure(self, error: Exception, times: int) -> None:
        """Wait for a database that has trouble, longer each time; anything else, or too much of it, is raised."""
        if not is_infrastructure(error) or times >= _TROUBLE_LIMIT:
            raise error
        logger.warning("The worker can't reach its database; it tries again", exc_info=error)
        connections[self.using].close()
        self._stopping.wait(min(_LONGEST_PAUSE, 2.0**times / 4))
