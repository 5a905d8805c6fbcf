from __future__ import annotations

from datetime import timedelta

import pytest

from tests.celery.recording import Sent
from tests.shop.models import Effect
from workflow_engine import Await, Context, Fail, Outcome, Workflow, clock, engine, step
from workflow_engine.engine import Answer
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload
from workflow_engine.worker import Worker

NOW = timedelta()
AFTER_A_MOMENT = timedelta(seconds=1)


@pytest.fixture
def report() -> type[Workflow]:
    class Report(Workflow):
        name = "report"
        queue = "reports"

        @step
        def collect(self, ctx: Context) -> None:
            Effect.objects.create(instance_id=ctx.instance_id, step="collect")

        @step(queue="printers")
        def print_it(self, ctx: Context) -> None:
            Effect.objects.create(instance_id=ctx.instance_id, step="print_it")

        @step
        def file(self, ctx: Context) -> None:
            Effect.objects.create(instance_id=ctx.instance_id, step="file")

    return Report


def done(instance: WorkflowInstance) -> list[str]:
    return list(Effect.objects.filter(instance_id=instance.pk).order_by("pk").values_list("step", flat=True))


def test_a_message_goes_to_the_queue_of_the_workflow(report: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(report)
    assert sent == [Sent(instance.pk, "reports", NOW)]


def test_a_start_may_ask_for_another_queue_and_its_steps_keep_theirs(report: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(report, queue="urgent")
    drive(instance.pk, "default", queue="urgent")
    assert sent == [Sent(instance.pk, "urgent", NOW), Sent(instance.pk, "printers", NOW)]


def test_a_step_with_a_queue_of_its_own_runs_where_that_queue_is_served(
    report: type[Workflow], sent: list[Sent]
) -> None:
    instance = engine.start(report)
    drive(instance.pk, "default", queue="reports")
    assert done(instance) == ["collect"]
    drive(instance.pk, "default", queue="printers")
    assert done(instance) == ["collect", "print_it"]
    drive(instance.pk, "default", queue="reports")
    assert done(instance) == ["collect", "print_it", "file"]
    assert [message.queue for message in sent] == ["reports", "printers", "reports"]
    assert reload(instance).status == "completed"


def test_a_message_that_comes_to_the_wrong_queue_is_passed_on_and_runs_nothing(
    report: type[Workflow], sent: list[Sent]
) -> None:
    instance = engine.start(report)
    assert drive(instance.pk, "default", queue="printers").answer == Answer.HANDED_OVER
    assert done(instance) == []
    assert sent[1:] == [Sent(instance.pk, "reports", AFTER_A_MOMENT)]
    row = reload(instance)
    assert (row.suspect, row.recoveries) == (False, 0)


def test_what_a_process_died_of_is_still_to_be_claimed_by_whoever_it_is_passed_on_to(report: type[Workflow]) -> None:
    instance = engine.start(report)
    WorkflowInstance.objects.filter(pk=instance.pk).update(
        recoveries=1, poll_at=clock.now("default") - timedelta(seconds=1)
    )
    assert drive(instance.pk, "default", queue="printers").answer == Answer.HANDED_OVER
    row = reload(instance)
    assert (row.suspect, row.recoveries) == (True, 1)
    drive(instance.pk, "default", queue="reports")
    assert done(instance) == ["collect"]


def test_a_message_to_the_wrong_queue_about_nothing_is_not_passed_on(sent: list[Sent]) -> None:
    class Wait(Workflow):
        name = "wait"

        @step(queue="desk")
        def ask(self, ctx: Context) -> Outcome:
            return Await("answer")

    instance = engine.start(Wait)
    drive(instance.pk, "default", queue="desk")
    sent.clear()
    assert drive(instance.pk, "default", queue="").answer == Answer.NOT_DUE
    assert sent == []
    engine.signal(instance, "answer")
    assert drive(instance.pk, "default", queue="").answer == Answer.HANDED_OVER
    assert sent == [Sent(instance.pk, "desk", NOW), Sent(instance.pk, "desk", AFTER_A_MOMENT)]


def test_an_undo_runs_where_its_step_ran(sent: list[Sent]) -> None:
    class Print(Workflow):
        name = "print"

        @step(queue="printers")
        def print_it(self, ctx: Context) -> None: ...

        @print_it.compensation
        def shred(self, ctx: Context, result: object) -> None: ...

        @step
        def check(self, ctx: Context) -> Outcome:
            return Fail("smudged")

    instance = engine.start(Print)
    drive(instance.pk, "default", queue="printers")
    drive(instance.pk, "default", queue="")
    assert reload(instance).status == "compensating"
    drive(instance.pk, "default", queue="printers")
    assert reload(instance).status == "compensated"
    assert [message.queue for message in sent] == ["printers", "", "printers"]


def test_a_request_is_carried_out_by_a_person_whatever_the_queue(report: type[Workflow], sent: list[Sent]) -> None:
    instance = engine.start(report)
    engine.cancel(instance)
    engine.drive(instance)
    assert reload(instance).status == "cancelled"


def test_an_embedded_worker_takes_every_queue(report: type[Workflow]) -> None:
    instance = engine.start(report)
    Worker().run(burst=True)
    assert done(instance) == ["collect", "print_it", "file"]
