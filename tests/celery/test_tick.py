from __future__ import annotations

import logging
from collections import Counter
from copy import copy
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.db import transaction
from django.db.models import F, Model
from pytest_django.fixtures import Settings

from tests.celery import recording
from tests.celery.recording import Sent
from tests.traps import needs
from tests.traps.background import in_thread
from workflow_engine import Await, Context, Outcome, Sleep, Workflow, clock, engine, step, tick
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowWorker
from workflow_engine.models.identifiers import uuid7
from workflow_engine.testing import reload

GRACE = timedelta(seconds=60)

T = TypeVar("T", bound=Model)


@pytest.fixture
def nap() -> type[Workflow]:
    class Nap(Workflow):
        name = "nap"

        @step
        def sleep(self, ctx: Context) -> Outcome:
            return Sleep(ctx.input["seconds"])

    return Nap


@pytest.fixture
def ask() -> type[Workflow]:
    class Ask(Workflow):
        name = "ask"

        @step
        def ask(self, ctx: Context) -> Outcome:
            return Await("answer", timeout=timedelta(days=30))

    return Ask


def parked(workflow: type[Workflow], sent: list[Sent], queue: str = "", **context: float) -> WorkflowInstance:
    instance = engine.start(workflow, context=context, queue=queue)
    drive(instance.pk, "default")
    sent.clear()
    return reload(instance)


def many(row: WorkflowInstance, count: int) -> set[UUID]:
    """That instance and its copies."""
    ids = [uuid7() for _ in range(count - 1)]
    history = list(WorkflowEvent.objects.filter(instance_id=row.pk))
    WorkflowInstance.objects.bulk_create([_copy(row, pk=pk) for pk in ids])
    WorkflowEvent.objects.bulk_create([_copy(event, pk=None, instance_id=pk) for pk in ids for event in history])
    return {row.pk, *ids}


def _copy(row: T, **values: object) -> T:
    copied = copy(row)
    for name, value in values.items():
        setattr(copied, name, value)
    return copied


def test_what_is_due_is_handed_out_and_not_again_within_its_grace(nap: type[Workflow], sent: list[Sent]) -> None:
    row = parked(nap, sent, seconds=3600)
    clock.shift(timedelta(hours=1))
    assert tick.tick("default") == tick.Ticked(handed_out=1)
    assert sent == [Sent(row.pk, "", timedelta())]
    assert tick.tick("default") == tick.Ticked()
    clock.shift(GRACE - timedelta(seconds=5))
    assert tick.tick("default") == tick.Ticked()
    assert reload(row).suspect is False


def test_a_row_whose_grace_ran_out_is_suspect_and_handed_out_again(nap: type[Workflow], sent: list[Sent]) -> None:
    row = parked(nap, sent, seconds=3600)
    clock.shift(timedelta(hours=1))
    tick.tick("default")
    clock.shift(GRACE)
    assert tick.tick("default") == tick.Ticked(handed_out=1)
    assert reload(row).suspect is True
    drive(row.pk, "default")
    row = reload(row)
    assert (row.status, row.suspect, row.recoveries) == ("completed", False, 0)


def test_what_becomes_due_before_the_next_tick_is_handed_out_with_that_delay(
    nap: type[Workflow], sent: list[Sent]
) -> None:
    row = parked(nap, sent, seconds=3600)
    later = parked(nap, sent, seconds=3700)
    clock.shift(timedelta(seconds=3595))
    assert tick.tick("default") == tick.Ticked(handed_out=1)
    assert [(message.instance_id, round(message.seconds)) for message in sent] == [(row.pk, 5)]
    assert row.due_at is not None
    assert reload(row).poll_at == row.due_at + GRACE
    assert reload(later).poll_at == later.due_at


def test_the_most_urgent_is_sent_first_and_no_delay_grows_by_the_time_that_sending_the_others_took(
    nap: type[Workflow], sent: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [parked(nap, sent, seconds=seconds) for seconds in (3609, 3605, 3600, 3607)]
    dispatch = recording.RecordingDispatcher.dispatch

    def dawdle(dispatcher: recording.RecordingDispatcher, *args: Any, **kwargs: Any) -> None:
        dispatch(dispatcher, *args, **kwargs)
        clock.shift(timedelta(seconds=3))

    monkeypatch.setattr(recording.RecordingDispatcher, "dispatch", dawdle)
    clock.shift(timedelta(seconds=3600))
    tick.tick("default")
    numbers = {row.pk: number for number, row in enumerate(rows)}
    # The last two are due in 7 s and 9 s, of which 6 s and 9 s are over.
    assert [(numbers[message.instance_id], round(message.seconds)) for message in sent] == [
        (2, 0),
        (1, 2),
        (3, 1),
        (0, 0),
    ]


def test_many_that_wake_at_one_second_are_handed_out_in_pages_once_each_by_two_ticks_at_once(
    nap: type[Workflow], sent: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "_PAGE", 40)
    ids = many(parked(nap, sent, seconds=3600), 330)
    clock.shift(timedelta(hours=1))
    ticks = [in_thread(lambda: tick.tick("default")) for _ in range(2)]
    results = [running.result(60) for running in ticks]
    assert Counter(message.instance_id for message in sent) == Counter(ids)
    assert sum(result.handed_out for result in results) == len(ids)
    assert sum(result.failed for result in results) == 0


@needs.server
def test_a_locked_row_is_stepped_over(nap: type[Workflow], sent: list[Sent]) -> None:
    held, free = parked(nap, sent, seconds=3600), parked(nap, sent, seconds=3600)
    clock.shift(timedelta(hours=1))
    with transaction.atomic():
        WorkflowInstance.objects.select_for_update().get(pk=held.pk)
        assert in_thread(lambda: tick.tick("default")).result(60) == tick.Ticked(handed_out=1)
    assert [message.instance_id for message in sent] == [free.pk]


def test_old_mail_wakes_its_instance_once_per_grace(ask: type[Workflow], sent: list[Sent]) -> None:
    row = parked(ask, sent)
    engine.signal(row, "answer")
    sent.clear()
    assert tick.tick("default") == tick.Ticked()
    clock.shift(timedelta(seconds=11))
    assert tick.tick("default") == tick.Ticked(woken=1)
    assert sent == [Sent(row.pk, "", timedelta())]
    clock.shift(timedelta(seconds=11))
    assert tick.tick("default") == tick.Ticked()
    assert reload(row).suspect is False
    clock.shift(GRACE)
    assert tick.tick("default") == tick.Ticked(handed_out=1)
    drive(row.pk, "default")
    assert reload(row).status == "completed"


def test_the_mail_of_what_nobody_drives_is_sorted_here(ask: type[Workflow], sent: list[Sent]) -> None:
    paused = parked(ask, sent)
    engine.pause(paused)
    drive(paused.pk, "default")
    engine.signal(paused, "answer")
    engine.resume(paused)
    sent.clear()
    clock.shift(timedelta(seconds=11))
    assert tick.tick("default") == tick.Ticked(woken=1)
    assert reload(paused).paused is False
    assert [message.instance_id for message in sent] == [paused.pk]
    drive(paused.pk, "default")
    assert reload(paused).status == "completed"


def test_mail_that_comes_while_a_row_is_handed_out_for_later_is_not_kept_waiting(
    ask: type[Workflow], sent: list[Sent]
) -> None:
    row = parked(ask, sent)
    clock.shift(timedelta(days=30, seconds=-8))
    engine.signal(row, "answer")
    sent.clear()
    tick.tick("default")
    assert sent == [Sent(row.pk, "", timedelta())]


def test_a_broker_that_is_away_ends_the_tick_and_marks_nothing(
    nap: type[Workflow], sent: list[Sent], caplog: pytest.LogCaptureFixture
) -> None:
    row = parked(nap, sent, seconds=3600, queue=recording.AWAY)
    ids = many(row, 3)
    clock.shift(timedelta(hours=1))
    caplog.clear()
    assert tick.tick("default") == tick.Ticked(failed=3)
    told = (
        "The tick ends early, the next one goes on: The broker did not take the message (no answer within 2 s). Is it"
        " running, and is the URL right?"
    )
    assert caplog.record_tuples == [("workflow_engine", logging.WARNING, told)]
    assert WorkflowInstance.objects.filter(poll_at=F("due_at"), suspect=False).count() == len(ids)
    WorkflowInstance.objects.update(queue="")
    assert tick.tick("default") == tick.Ticked(handed_out=3)


def test_one_that_cannot_be_sent_keeps_no_other_waiting(
    nap: type[Workflow], sent: list[Sent], caplog: pytest.LogCaptureFixture
) -> None:
    bad = parked(nap, sent, seconds=3600, queue=recording.UNKNOWN)
    good = parked(nap, sent, seconds=3600)
    clock.shift(timedelta(hours=1))
    caplog.clear()
    assert tick.tick("default") == tick.Ticked(handed_out=1, failed=1)
    assert [message.instance_id for message in sent] == [good.pk]
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", f"Handing out workflow instance {bad.pk} failed; the next tick tries again")
    ]
    assert tick.tick("default") == tick.Ticked(failed=1)


def test_a_long_backlog_is_left_to_the_next_tick(
    nap: type[Workflow], sent: list[Sent], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(tick, "_PAGE", 2)
    settings.WORKFLOW_ENGINE = {**settings.WORKFLOW_ENGINE, "TICK_INTERVAL": 0.000001}
    ids = many(parked(nap, sent, seconds=3600), 5)
    clock.shift(timedelta(hours=2))
    assert [tick.tick("default").handed_out for _ in range(4)] == [2, 2, 1, 0]
    assert {message.instance_id for message in sent} == ids


def test_a_tick_is_seen_once_per_host(nap: type[Workflow], sent: list[Sent]) -> None:
    tick.tick("default")
    clock.shift(timedelta(minutes=5))
    tick.tick("default")
    (seen,) = WorkflowWorker.objects.filter(kind="tick")
    assert seen.seen_at - seen.started_at >= timedelta(minutes=5)
