"""A process makes itself known, so that "no worker is running" can be told."""

from __future__ import annotations

import os
import socket
import time

from django.db import DatabaseError, InterfaceError

from workflow_engine import clock, conf
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowWorker


class Registration:
    """This process's row in workflow_workers: renewed a few times per WORKER_SEEN, removed at an orderly end."""

    def __init__(self, kind: WorkflowWorker.Kind, using: str) -> None:
        self._kind = kind
        self._using = using
        self._row: WorkflowWorker | None = None
        self._renewed = 0.0

    def renew(self) -> None:
        """Note that this process is alive, unless it was noted a moment ago."""
        every = conf.current().duration("WORKER_SEEN").total_seconds() / 4
        if self._row is not None and time.monotonic() - self._renewed < every:
            return
        now = clock.now(self._using)
        workers = WorkflowWorker.objects.using(self._using)
        if self._row is None or not workers.filter(pk=self._row.pk).update(seen_at=now):
            workers.filter(seen_at__lt=now - 10 * conf.current().duration("WORKER_SEEN")).delete()
            self._row = workers.create(
                kind=self._kind,
                host=socket.gethostname()[:255],
                pid=os.getpid(),
                knows=[f"{workflow.name}:{workflow.version}" for workflow in registry],
                started_at=now,
                seen_at=now,
            )
        self._renewed = time.monotonic()

    def end(self) -> None:
        """Remove the row; if that can't be done, it grows old by itself."""
        if self._row is None:
            return
        try:
            WorkflowWorker.objects.using(self._using).filter(pk=self._row.pk).delete()
        except (DatabaseError, InterfaceError):
            return
        finally:
            self._row = None
