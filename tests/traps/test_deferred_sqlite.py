"""SQLite whose transactions begin as DEFERRED: a lock is taken at the first write only, and may be refused then.

A check warns of that (WORKFLOW_ENGINE wants IMMEDIATE), but nothing is lost and nothing is done twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest
from django.db import OperationalError

from tests.shop.models import Counter
from tests.support import ONCE, kinds
from tests.traps import needs
from tests.traps.background import PATIENCE, connection_settings, eventually, in_thread, wait_for
from workflow_engine import Await, Context, Workflow, engine, step
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.testing import drain, reload
from workflow_engine.worker import Worker

pytestmark = [pytest.mark.django_db(transaction=True), needs.sqlite]


@pytest.fixture(autouse=True)
def deferred() -> Iterator[None]:
    with connection_settings(OPTIONS={"transaction_mode": "DEFERRED"}):
        yield


def test_two_that_run_the_same_step_at_once_commit_it_once() -> None:
    inside, leave = threading.Event(), threading.Event()
    calls: list[int] = []

    class Racing(Workflow):
        name = "racing"

        @step(retry=ONCE)
        def write(self, ctx: Context) -> None:
            calls.append(ctx.attempt)
            if len(calls) == 1:
                inside.set()
                wait_for(leave)
            Counter.objects.create(name=f"call {len(calls)}")

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("go")

    instance = engine.start(Racing)
    first = in_thread(lambda: engine.advance(instance).answer)
    wait_for(inside)
    assert engine.advance(instance).answer == Answer.ADVANCED  # the "lock" of the first one holds nobody up
    leave.set()
    assert first.result(PATIENCE) == Answer.ADVANCED  # with the step that follows
    assert calls == [1, 1]
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_awaiting"]
    assert [counter.name for counter in Counter.objects.all()] == ["call 2"]


def test_what_several_threads_send_and_drive_is_consumed_once_and_nothing_is_lost() -> None:
    class Collecting(Workflow):
        name = "collecting"

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("go")

        @step
        def write(self, ctx: Context) -> None:
            Counter.objects.create(name=str(ctx.instance_id))

    def send(instance: WorkflowInstance) -> None:
        """Like a webhook: an error is answered by sending it again."""

        def sent() -> bool:
            try:
                return bool(engine.signal(instance, "go", idempotency_key=str(instance.pk)))
            except OperationalError:
                return False

        eventually(sent)

    instances = [engine.start(Collecting) for _ in range(8)]
    senders = [in_thread(partial(send, instance)) for instance in instances]
    workers = [in_thread(partial(Worker().run, burst=True)) for _ in range(2)]
    for sender in senders:
        sender.result(PATIENCE)
    for worker in workers:
        worker.result(PATIENCE)
    drain()
    assert [reload(instance).status for instance in instances] == ["completed"] * 8
    assert Counter.objects.count() == 8
    assert list(WorkflowSignal.objects.values_list("state", flat=True)) == ["consumed"] * 8
