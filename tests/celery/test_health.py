from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError
from pytest_django.fixtures import Settings

from tests.celery.recording import Sent
from tests.management.calling import refused, say
from workflow_engine import Await, Context, Fail, Outcome, Sleep, Workflow, clock, engine, step, tick
from workflow_engine.engine.driving import drive
from workflow_engine.inspection import health
from workflow_engine.models import WorkflowInstance, WorkflowWorker
from workflow_engine.worker import Worker
from workflow_engine.worker.registration import Registration


@pytest.fixture
def nap() -> type[Workflow]:
    class Nap(Workflow):
        name = "nap"

        @step
        def sleep(self, ctx: Context) -> Outcome:
            return Sleep(3600)

    return Nap


@pytest.fixture
def worker() -> None:
    Registration(WorkflowWorker.Kind.WORKER, "default").renew()


def unhealthy(*arguments: object) -> str:
    with pytest.raises(CommandError) as caught:
        say("workflow_health", *arguments)
    assert caught.value.returncode == 2
    return str(caught.value)


@pytest.mark.usefixtures("worker")
def test_what_is_healthy_is_told_in_a_table(nap: type[Workflow]) -> None:
    drive(engine.start(nap).pk, "default")
    assert say("workflow_health").lines == [
        "what                     is                 limit",
        "oldest due instance      -                  2 m",
        "last tick                -                  -",
        "workers                  1 embedded worker  at least 1",
        "pending signals          0                  -",
        "failed in the last hour  0                  -",
        "suspects                 0                  -",
    ]


@pytest.mark.usefixtures("worker")
def test_what_is_healthy_is_told_in_json() -> None:
    assert say("workflow_health", "--json").json == {
        "healthy": True,
        "problems": [],
        "oldest_due_seconds": None,
        "last_tick_seconds": None,
        "workers": {"worker": 1},
        "pending": 0,
        "failed": 0,
        "suspects": 0,
    }


def test_no_worker_is_unhealthy_where_workers_fetch_their_work() -> None:
    assert unhealthy() == "0 workers have reported lately; there should be 1."
    Registration(WorkflowWorker.Kind.WORKER, "default").renew()
    assert unhealthy("--min-workers", 2) == "1 worker has reported lately; there should be 2."
    clock.shift(timedelta(seconds=121))
    assert unhealthy("--json").startswith("0 workers have reported")


@pytest.mark.usefixtures("worker")
def test_an_instance_that_nobody_takes_is_unhealthy(nap: type[Workflow]) -> None:
    drive(engine.start(nap).pk, "default")
    clock.shift(timedelta(hours=1, seconds=100))
    Registration(WorkflowWorker.Kind.WORKER, "default").renew()
    say("workflow_health")
    clock.shift(timedelta(seconds=30))
    found = unhealthy("--max-due-age", "2m", "--min-workers", 0)
    assert found.startswith("An instance has been due for 2 m ")
    assert found.endswith("; the limit is 2 m.")


def test_one_that_was_handed_out_and_not_taken_is_still_due(nap: type[Workflow], sent: list[Sent]) -> None:
    drive(engine.start(nap).pk, "default")
    clock.shift(timedelta(hours=1))
    for _ in range(20):
        clock.shift(timedelta(seconds=10))
        tick.tick("default")
    found = health.read("default")
    assert found.oldest_due is not None
    assert found.oldest_due >= timedelta(seconds=200)
    assert found.suspects == 1
    assert (
        unhealthy("--max-suspects", 0, "--max-due-age", "1h") == "Instances that lost their process: 1; the limit is 0."
    )


def test_where_work_is_handed_out_a_tick_must_run(sent: list[Sent], settings: Settings) -> None:
    assert unhealthy() == "No tick has run."
    tick.tick("default")
    assert say("workflow_health", "--json").json["workers"] == {"tick": 1}
    clock.shift(timedelta(seconds=70))
    assert unhealthy() == "The last tick ran 1 m 10 s ago; the limit is 1 m."
    say("workflow_health", "--max-tick-age", "5m")
    settings.WORKFLOW_ENGINE = {**settings.WORKFLOW_ENGINE, "TICK_INTERVAL": 30}
    say("workflow_health")


@pytest.mark.usefixtures("worker")
def test_mail_and_failures_are_counted() -> None:
    class Ask(Workflow):
        name = "ask"

        @step
        def ask(self, ctx: Context) -> Outcome:
            return Await("answer")

    class Broken(Workflow):
        name = "broken"

        @step
        def break_down(self, ctx: Context) -> Outcome:
            return Fail("broken")

    instance = engine.start(Ask)
    engine.start(Broken)
    Worker().run(burst=True)
    engine.signal(instance, "answer")
    found = health.read("default")
    assert (found.pending, found.failed) == (1, 1)
    assert unhealthy("--max-pending", 0, "--max-failed", 0, "--min-workers", 0) == (
        "Signals that nobody has looked at: 1; the limit is 0."
        " Instances that failed in the last hour: 1; the limit is 0."
    )
    clock.shift(timedelta(minutes=61))
    assert health.read("default").failed == 0


def test_a_wrong_length_of_time_is_refused() -> None:
    assert refused("workflow_health", "--max-due-age", "soon") == (
        "--max-due-age is 'soon'. Write a length of time like 90s, 30m, 2h, 7d or 1d12h."
    )


def test_sleeping_rows_are_not_read(nap: type[Workflow]) -> None:
    drive(engine.start(nap).pk, "default")
    assert list(health.near("default", clock.now("default"))) == []
    assert WorkflowInstance.objects.count() == 1
