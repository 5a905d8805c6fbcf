"""Work that waits long, because there is much of it or nobody to do it, is not suspected of anything."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from tests.support import kinds
from workflow_engine import Context, Workflow, activity, clock, engine, step
from workflow_engine.dispatch import Dispatcher
from workflow_engine.models import WorkflowInstance
from workflow_engine.tick import tick
from workflow_engine.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)

CLEAN = ["workflow_started", "step_completed", "step_started", "step_completed", "step_completed", "workflow_completed"]
"""The history of `Plain`, when nothing was done twice, given up or recovered."""


def define() -> type[Workflow]:
    class Plain(Workflow):
        name = "plain"

        @step
        def first(self, ctx: Context) -> None: ...

        @activity
        def second(self, ctx: Context) -> None: ...

        @step
        def third(self, ctx: Context) -> None: ...

    return Plain


class Broker(Dispatcher):
    """Takes messages and delivers none."""

    pushes: ClassVar[bool] = True
    messages: ClassVar[list[UUID]] = []

    def dispatch(self, instance_id: UUID, **_: object) -> None:
        """Keep the message."""
        self.messages.append(instance_id)


def assert_all_went_well(workflow: type[Workflow], count: int) -> None:
    rows = WorkflowInstance.objects.filter(workflow_name=workflow.name)
    assert {(row.status, row.recoveries, row.suspect) for row in rows} == {("completed", 0, False)}
    assert [kinds(row) for row in rows] == [CLEAN] * count


def test_a_days_backlog_of_an_embedded_worker_is_done_once() -> None:
    workflow = define()
    for _ in range(30):
        engine.start(workflow)
    clock.shift(timedelta(days=1))
    assert Worker().run(burst=True) == 30
    assert_all_went_well(workflow, 30)


def test_what_a_slow_broker_was_handed_again_and_again_is_done_once(settings: Settings) -> None:
    """Handing out never counts: more rounds than MAX_RECOVERIES, and still nothing is poison."""
    settings.WORKFLOW_ENGINE = {"DISPATCHER": f"{__name__}.Broker", "MAX_RECOVERIES": 2, "GRACE": 60}
    Broker.messages.clear()
    workflow = define()
    instances = {engine.start(workflow).pk for _ in range(3)}
    for _ in range(6):
        clock.shift(timedelta(seconds=61))
        assert tick("default").handed_out == 3
        assert tick("default").handed_out == 0
    assert len(Broker.messages) == 3 + 6 * 3
    for instance_id in Broker.messages:
        engine.drive(instance_id)
    assert set(Broker.messages) == instances
    assert_all_went_well(workflow, 3)
