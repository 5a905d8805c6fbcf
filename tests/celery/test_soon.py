from __future__ import annotations

import time

import pytest

from tests.celery.recording import Sent
from workflow_engine import Await, Context, Outcome, RetryPolicy, Sleep, Workflow, activity, clock, engine, step
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload

GRACE = 60


def driven(workflow: type[Workflow], sent: list[Sent]) -> WorkflowInstance:
    instance = engine.start(workflow)
    sent.clear()
    drive(instance.pk, "default", queue="")
    return reload(instance)


def seconds_to_poll(row: WorkflowInstance) -> float:
    assert row.poll_at is not None
    return (row.poll_at - clock.now("default")).total_seconds()


def test_what_parks_for_less_than_an_interval_is_sent_at_once_with_that_delay(sent: list[Sent]) -> None:
    class Nap(Workflow):
        name = "nap"

        @step
        def nap(self, ctx: Context) -> Outcome:
            return Sleep(5)

    row = driven(Nap, sent)
    (message,) = sent
    assert message.instance_id == row.pk
    assert message.seconds == pytest.approx(5, abs=0.5)
    assert seconds_to_poll(row) == pytest.approx(5 + GRACE, abs=1)


def test_what_parks_for_longer_is_left_to_tick(sent: list[Sent]) -> None:
    class Doze(Workflow):
        name = "doze"

        @step
        def doze(self, ctx: Context) -> Outcome:
            return Sleep(11)

    row = driven(Doze, sent)
    assert sent == []
    assert row.poll_at == row.due_at


def test_a_retry_and_a_deadline_are_sent_like_a_sleep(sent: list[Sent]) -> None:
    class Flaky(Workflow):
        name = "flaky"

        @step(retry=RetryPolicy(initial_delay=2, jitter=False))
        def flake(self, ctx: Context) -> None:
            raise ConnectionError("flake")

    class Hasty(Workflow):
        name = "hasty"

        @step
        def ask(self, ctx: Context) -> Outcome:
            return Await("answer", timeout=3)

    driven(Flaky, sent)
    assert [round(message.seconds) for message in sent] == [2]
    driven(Hasty, sent)
    assert [round(message.seconds) for message in sent] == [3]


def test_the_delay_does_not_shrink_by_the_time_that_an_activity_took(sent: list[Sent]) -> None:
    class Slow(Workflow):
        name = "slow"

        @activity(retry=RetryPolicy(initial_delay=2, jitter=False))
        def call(self, ctx: Context) -> None:
            time.sleep(0.6)
            raise ConnectionError("slow")

    driven(Slow, sent)
    assert [message.seconds for message in sent] == [pytest.approx(2, abs=0.3)]


def test_the_end_of_a_short_lease_is_not_sent(sent: list[Sent]) -> None:
    leases: list[int] = []

    class Brief(Workflow):
        name = "brief"

        @activity(lease=5)
        def call(self, ctx: Context) -> None:
            leases.append(len(sent))

    driven(Brief, sent)
    assert leases == [0]
