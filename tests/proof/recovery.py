"""Recovery as it happens in production: time passes, workers and ticks look, until nothing is left to do."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connections, transaction
from django.db.models import Min

from tests.proof import broker, ledger
from workflow_engine import clock, conf
from workflow_engine.dispatch import dispatcher
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.tick import tick
from workflow_engine.worker import Worker

HORIZON = timedelta(minutes=40)
"""What is due later than that is a wait that its scenario wants to last: holds, leases and backoffs are shorter."""

_PATIENCE = 100


class NeverQuietError(AssertionError):
    """Recovery goes on for ever."""


def until_quiet(using: str = "default") -> None:
    """Work, and let time pass up to the next thing that is due, until nothing is within the HORIZON.

    Raises:
        NeverQuietError: there is always something more.
    """
    wait_for_the_dead(using)
    for _ in range(_PATIENCE):
        work(using)
        now = clock.now(using)
        following = _next_look(now, using)
        if following is None or following > now + HORIZON:
            return
        pass_time(max(following - now, timedelta()) + timedelta(milliseconds=1))
    raise NeverQuietError(list(WorkflowInstance.objects.using(using).values("id", "status", "due_at", "poll_at")))


def work(using: str = "default") -> None:
    """Let everything that is due now run, by a worker; or with a broker by a tick and whoever takes the jobs."""
    if not dispatcher().pushes:
        Worker(using).run(burst=True)
        return
    tick(using)
    for instance_id in broker.deliveries():
        drive(instance_id, using)


def pass_time(by: timedelta) -> None:
    """Let time pass for the engine, in this process and in those that go on where it died."""
    clock.shift(by)
    ledger.write("shifted", by=ledger.shift())


def pass_time_until(seconds: float) -> None:
    """Like `pass_time`, up to so many seconds since the beginning of the case; nothing if that is over."""
    pass_time(max(timedelta(seconds=seconds) - clock._offset.get(), timedelta()))


def catch_up() -> None:
    """Take over the time that a dead process had reached: there is but one clock."""
    shifts = [entry["by"] for entry in ledger.read() if entry["what"] == "shifted"]
    clock.reset_shift()
    clock.shift(timedelta(seconds=max(shifts, default=0.0)))


def wait_for_the_dead(using: str) -> None:
    """Wait until the database has noticed that killed sessions are gone: their locks are free then."""
    if connections[using].vendor == "sqlite":
        return
    with transaction.atomic(using=using):
        list(WorkflowInstance.objects.using(using).select_for_update().values_list("pk"))
        list(WorkflowSignal.objects.using(using).select_for_update().values_list("pk"))


def _next_look(now: datetime, using: str) -> datetime | None:
    """When somebody looks at an instance next, or at mail that nobody was woken for."""
    first: datetime | None = WorkflowInstance.objects.using(using).aggregate(first=Min("poll_at"))["first"]
    if not WorkflowSignal.objects.using(using).pending().exists():
        return first
    looked_at = now + conf.current().duration("TICK_INTERVAL")
    return looked_at if first is None else min(first, looked_at)
