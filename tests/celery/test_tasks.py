from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

pytest.importorskip("celery", reason="needs Celery: pip install -e '.[services]'")

from tests.celery.brokers import MEMORY, app_at, messages
from tests.celery.recording import Sent
from tests.traps import needs
from tests.traps.background import PATIENCE, connection_settings, in_thread, wait_for
from workflow_engine import Context, Outcome, Sleep, Workflow, clock, engine, failpoints, step, tasks
from workflow_engine.engine.locking import lock
from workflow_engine.exceptions import UnknownWorkflowError
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowWorker
from workflow_engine.testing import reload


@pytest.fixture
def nap() -> type[Workflow]:
    class Nap(Workflow):
        name = "nap"

        @step
        def sleep(self, ctx: Context) -> Outcome:
            return Sleep(ctx.input["seconds"])

    return Nap


@pytest.fixture
def digest() -> type[Workflow]:
    class Digest(Workflow):
        name = "digest"

        @step
        def send(self, ctx: Context) -> None: ...

    return Digest


@contextmanager
def sent_at(moment: str) -> Iterator[Any]:
    """The task, in a worker, with a message that was sent at that time."""
    tasks.start.push_request(**{tasks.SENT_AT: moment})
    try:
        yield tasks.start.run
    finally:
        tasks.start.pop_request()


def keys() -> list[str | None]:
    return list(WorkflowInstance.objects.order_by("pk").values_list("idempotency_key", flat=True))


@pytest.mark.parametrize("name", ["advance", "tick", "prune", "start"])
def test_a_task_is_named_after_its_verb_and_stores_no_result(name: str) -> None:
    task = getattr(tasks, name)
    assert task.name == f"workflow_engine.{name}"
    assert (task.acks_late, task.ignore_result) == (True, True)


@pytest.mark.parametrize("name", ["advance", "tick", "prune"])
def test_recovery_is_the_ticks_job_and_not_the_brokers(name: str) -> None:
    task = getattr(tasks, name)
    assert (task.reject_on_worker_lost, task.max_retries) == (False, 0)


def test_a_message_drives_its_instance(digest: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(digest)
    tasks.advance(str(instance.pk))
    assert reload(instance).status == "completed"


def test_a_message_that_comes_twice_or_to_nobody_changes_nothing(digest: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(digest)
    tasks.advance(str(instance.pk))
    before = WorkflowEvent.objects.count()
    tasks.advance(str(instance.pk))
    tasks.advance(str(uuid4()))
    assert WorkflowEvent.objects.count() == before


def test_a_message_that_comes_a_little_early_waits_for_its_time(nap: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(nap, context={"seconds": 0.7})
    tasks.advance(str(instance.pk))
    started = time.monotonic()
    tasks.advance(str(instance.pk))
    row = reload(instance)
    assert row.status == "completed"
    assert time.monotonic() - started > 0.4
    slept, *_, woken = WorkflowEvent.objects.filter(instance_id=instance.pk).order_by("seq")[1:3]
    assert woken.created_at - slept.created_at >= timedelta(seconds=0.7)


def test_a_message_that_comes_much_too_early_leaves_the_instance_to_tick(nap: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(nap, context={"seconds": 8})
    tasks.advance(str(instance.pk))
    started = time.monotonic()
    tasks.advance(str(instance.pk))
    assert time.monotonic() - started < 1
    row = reload(instance)
    assert (row.status, row.poll_at) == ("sleeping", row.due_at)


def test_a_message_found_early_by_a_moment_that_is_then_over_is_not_given_up(
    nap: type[Workflow], sent: list[Sent]
) -> None:
    instance = engine.start(nap, context={"seconds": 5})
    tasks.advance(str(instance.pk))
    until: list[timedelta] = [timedelta(seconds=5)]

    def reached(name: str) -> None:
        if name == "commit.after" and until:
            clock.shift(until.pop())

    with failpoints.installed(reached):
        tasks.advance(str(instance.pk))
    assert reload(instance).status == "completed"


@needs.server
@pytest.mark.parametrize("suspect", [False, True])
def test_a_message_whose_row_is_being_looked_at_comes_again_instead_of_leaving_it_to_tick(
    suspect: bool, digest: type[Workflow], sent: list[Sent]
) -> None:
    """A tick, a heartbeat or a message that is early locks a row for a moment and drives nothing."""
    instance = engine.start(digest)
    WorkflowInstance.objects.filter(pk=instance.pk).update(suspect=suspect)
    looks, tries = 3, 0
    locked, seen = threading.Semaphore(0), threading.Semaphore(0)

    def look() -> None:
        with transaction.atomic():
            lock(instance.pk, "default")
            locked.release()
            assert seen.acquire(timeout=PATIENCE)

    def reached(name: str) -> None:
        nonlocal tries
        if threading.current_thread() is not threading.main_thread() or name != "lock.after":
            return
        tries += 1
        if tries == looks:
            seen.release()
            looker.result(PATIENCE)

    looker = in_thread(look)
    assert locked.acquire(timeout=PATIENCE)
    with failpoints.installed(reached):
        tasks.advance(str(instance.pk))
    assert tries > looks
    row = reload(instance)
    assert (row.status, row.suspect, row.recoveries) == ("completed", False, 0)


@needs.server
def test_a_message_whose_row_is_kept_locked_is_given_up_soon(digest: type[Workflow], sent: list[Sent]) -> None:
    """Who keeps it takes a turn, and looks at the instance afterwards; a worker has other things to do."""
    instance = engine.start(digest)
    locked, over = threading.Event(), threading.Event()

    def work() -> None:
        with transaction.atomic():
            lock(instance.pk, "default")
            locked.set()
            wait_for(over)

    worker = in_thread(work)
    wait_for(locked)
    tasks.advance(str(instance.pk))
    over.set()
    worker.result(PATIENCE)
    assert reload(instance).status == "pending"


def test_a_process_that_drives_makes_itself_known(digest: type[Workflow], sent: list[Sent]) -> None:
    tasks._registrations.clear()
    tasks.advance(str(engine.start(digest).pk))
    tasks.tick()
    worker = WorkflowWorker.objects.get(kind="celery")
    assert worker.pid == os.getpid()
    assert "digest:1" in worker.knows


def test_what_ended_long_ago_is_pruned(digest: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(digest)
    tasks.advance(str(instance.pk))
    tasks.prune()
    assert WorkflowInstance.objects.count() == 1
    clock.shift(timedelta(days=91))
    tasks.prune()
    assert WorkflowInstance.objects.count() == 0


@needs.server
def test_a_task_goes_on_with_a_new_connection_when_the_database_broke_the_old_one(
    digest: type[Workflow], sent: list[Sent]
) -> None:
    with connection_settings(CONN_MAX_AGE=None):
        instance = engine.start(digest)
        tasks.tick()
        kept = connection.connection
        tasks.tick()
        assert connection.connection is kept
        in_thread(partial(_end_session, _session())).result(30)
        tasks.advance(str(instance.pk))
        assert reload(instance).status == "completed"
        in_thread(partial(_end_session, _session())).result(30)
        tasks.start("digest")
    assert WorkflowInstance.objects.count() == 2


def _session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()" if connection.vendor == "postgresql" else "SELECT connection_id()")
        number: int = cursor.fetchone()[0]
        return number


def _end_session(number: int) -> None:
    postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_terminate_backend({number})" if postgresql else f"KILL {number}")


# --- recurring workflows --------------------------------------------------------------------------


def test_two_beats_start_one_instance_per_slot(digest: type[Workflow], sent: list[Sent]) -> None:
    for moment in ("2030-01-31T03:00:00.000001+00:00", "2030-01-31T03:00:02+00:00", "2030-02-01T03:00:00+00:00"):
        with sent_at(moment) as start:
            start("digest", slot="%Y-%m-%d")
    assert keys() == ["schedule:2030-01-31", "schedule:2030-02-01"]


def test_a_late_message_belongs_to_the_slot_in_which_it_was_sent(digest: type[Workflow], sent: list[Sent]) -> None:
    with sent_at("2030-01-31T23:59:59+00:00") as start:
        start("digest", slot="%Y-%m-%d")
    with sent_at("2030-02-01T23:59:59+00:00") as start:
        start("digest", slot="%Y-%m-%d")
    assert keys() == ["schedule:2030-01-31", "schedule:2030-02-01"]


def test_a_slot_goes_by_the_time_zone_of_the_schedule(digest: type[Workflow], sent: list[Sent]) -> None:
    # 00:30 in Berlin on both days, before and after the clocks go forward; in UTC both are on the 30th.
    for moment in ("2030-03-30T23:30:00+00:00", "2030-03-31T22:30:00+00:00"):
        with sent_at(moment) as start:
            start("digest", slot="%Y-%m-%d", zone="Europe/Berlin")
    assert keys() == ["schedule:2030-03-31", "schedule:2030-04-01"]


def test_the_hour_that_comes_twice_is_two_slots(digest: type[Workflow], sent: list[Sent]) -> None:
    for moment in ("2030-10-27T00:00:00+00:00", "2030-10-27T01:00:00+00:00"):
        with sent_at(moment) as start:
            start("digest", zone="Europe/Berlin")
    assert keys() == ["schedule:2030-10-27T02:00+0200", "schedule:2030-10-27T02:00+0100"]


def test_several_schedules_of_one_workflow_are_told_apart(digest: type[Workflow], sent: list[Sent]) -> None:
    for region in ("eu", "us"):
        with sent_at("2030-01-31T03:00:00+00:00") as start:
            start("digest", {"region": region}, slot="%Y-%m-%d", schedule=region)
    assert keys() == ["schedule:eu:2030-01-31", "schedule:us:2030-01-31"]


def test_a_message_without_a_time_of_sending_belongs_to_the_slot_in_which_it_is_read(
    digest: type[Workflow], sent: list[Sent]
) -> None:
    tasks.start("digest", slot="%Y")
    assert keys() == [f"schedule:{clock.now('default').year}"]


def test_a_start_carries_the_time_of_sending_and_keeps_it(digest: type[Workflow]) -> None:
    with app_at(MEMORY) as app:
        messages(app)
        app.send_task("workflow_engine.start", ["digest"])
        (message,) = messages(app)
        assert tasks.SENT_AT in message.headers
        app.send_task("workflow_engine.start", ["digest"], headers={tasks.SENT_AT: "2030-01-31T03:00:00+00:00"})
        (message,) = messages(app)
        assert message.headers[tasks.SENT_AT] == "2030-01-31T03:00:00+00:00"


def test_a_slot_that_never_changes_is_refused(digest: type[Workflow]) -> None:
    with pytest.raises(ValueError, match="slot") as caught:
        tasks.start("digest", slot="daily")
    assert str(caught.value) == (
        "slot is 'daily': the workflow would start once and never again. Give a strftime format."
    )


def test_an_unknown_workflow_is_an_error_that_names_it(sent: list[Sent]) -> None:
    with pytest.raises(UnknownWorkflowError):
        tasks.start("digets")
