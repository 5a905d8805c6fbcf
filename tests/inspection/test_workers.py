from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from workflow_engine import clock, engine
from workflow_engine.inspection import workers
from workflow_engine.models import WorkflowInstance, WorkflowWorker

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


def seen(ago: timedelta, *knows: str) -> WorkflowWorker:
    now = clock.now("default")
    return WorkflowWorker.objects.create(
        kind="worker", host="box", pid=1, knows=list(knows), started_at=now - ago, seen_at=now - ago
    )


def missing() -> str:
    return workers.missing("default", clock.now("default"))


def missing_for(row: WorkflowInstance) -> str:
    return workers.missing_for(row, "default", clock.now("default"))


def test_when_no_worker_was_ever_seen_that_is_said_with_the_remedy() -> None:
    assert missing() == "No worker has been seen. Start one: python manage.py workflow_worker"


def test_when_the_last_worker_is_gone_that_is_said() -> None:
    seen(timedelta(hours=3, minutes=2, seconds=1))
    assert missing() == "No worker has been seen for 3 h 2 m. Start one: python manage.py workflow_worker"


def test_a_worker_that_was_seen_lately_is_enough() -> None:
    worker = seen(timedelta(seconds=10))
    assert missing() == ""
    assert workers.seen("default", clock.now("default")) == [worker]


def test_a_worker_that_does_not_know_the_workflow_is_not_enough_for_its_instances() -> None:
    seen(timedelta(), "leave:1")
    assert missing_for(engine.start("parcel")) == ("None of the workers that have been seen knows the workflow parcel.")
    assert missing_for(engine.start("leave")) == ""


def test_an_instance_that_has_ended_needs_no_worker() -> None:
    row = engine.start("parcel")
    engine.cancel(row)
    engine.drive(row)
    row.refresh_from_db()
    assert missing_for(row) == ""


def test_other_dispatchers_bring_their_own_processes(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "inline"}
    assert missing() == ""
    seen(timedelta(), "leave:1")
    assert missing_for(WorkflowInstance(workflow_name="parcel", status="pending")) == ""
