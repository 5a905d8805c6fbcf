"""The test kit: run workflows in a plain TestCase, weeks in milliseconds.

class RefundTests(WorkflowTestMixin, TestCase):
    def test_gives_up_after_a_week(self):
        instance = self.start_workflow(Refund, subject=order)
        self.shift_time(days=7)
        self.assertEqual(self.reload(instance).status, "failed")
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import TestCase as UnitTestCase

from django.test import TestCase

from workflow_engine import clock, engine
from workflow_engine.domain.workflows import Workflow
from workflow_engine.engine.addressing import Addressed, database_of, load
from workflow_engine.models import WorkflowInstance
from workflow_engine.worker.loop import Worker

__all__ = ["WorkflowTestMixin", "drain", "reload", "signal", "start"]


def start(workflow: type[Workflow[Any]] | str, **options: Any) -> WorkflowInstance:
    """`engine.start()`, then run what became due; the instance as it is afterwards."""
    instance = engine.start(workflow, **options)
    drain(using=instance._state.db)
    return reload(instance)


def signal(instance: Addressed, name: str, data: Any = None, **options: Any) -> WorkflowInstance:
    """`engine.signal()`, then run what became due; the instance as it is afterwards."""
    engine.signal(instance, name, data, **options)
    drain(using=options.get("using"))
    return reload(instance, using=options.get("using"))


def drain(*, using: str | None = None) -> int:
    """Run everything that is due now, like a worker would, until nothing is; what waits for later stays.

    Inside a TestCase, whose transaction never commits, what is deferred until after commit (Django signals, jobs) runs
    at the end of the drain.

    Returns:
        How often an instance was driven.
    """
    alias = database_of(None, using)
    with TestCase.captureOnCommitCallbacks(using=alias, execute=True):
        return Worker(alias).run(burst=True)


def reload(instance: Addressed, *, using: str | None = None) -> WorkflowInstance:
    """The instance as the database has it now."""
    return load(instance, database_of(instance, using))


class WorkflowTestMixin(UnitTestCase):
    """The kit as methods of a TestCase; the engine's clock is set back after each test."""

    def start_workflow(self, workflow: type[Workflow[Any]] | str, **options: Any) -> WorkflowInstance:
        """See `start`."""
        return start(workflow, **options)

    def signal(self, instance: Addressed, name: str, data: Any = None, **options: Any) -> WorkflowInstance:
        """See `signal`."""
        return signal(instance, name, data, **options)

    def drain(self, *, using: str | None = None) -> int:
        """See `drain`."""
        return drain(using=using)

    def reload(self, instance: Addressed, *, using: str | None = None) -> WorkflowInstance:
        """See `reload`."""
        return reload(instance, using=using)

    def shift_time(self, **units: float) -> None:
        """Let time pass for the engine, e.g. `shift_time(days=3, hours=1)`, and run what became due."""
        self.addCleanup(clock.reset_shift)
        clock.shift(timedelta(**units))
        self.drain()
