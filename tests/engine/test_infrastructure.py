"""Trouble of the database is not a failure of the step: the transaction is run again whole, and no attempt is used."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import override_settings

from tests.shop.models import Counter, Effect
from tests.shop.workflows import OneStep, WaitForGo, leave_effect
from tests.support import TWICE, error_of, events, kinds, later, mailbox, seconds_until, settled
from workflow_engine import Await, Context, Outcome, Signal, Workflow, activity, clock, engine, step
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain, reload

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="the trouble is made with SQLite's means"),
]


def meet_a_lock() -> None:
    """What SQLite says of a statement that something else on the connection is in the way of: SQLITE_LOCKED."""
    with connection.cursor() as reading, connection.cursor() as dropping:
        dropping.execute("CREATE TABLE in_use (x)")
        reading.execute("SELECT name FROM sqlite_master")
        try:
            dropping.execute("DROP TABLE in_use")
        finally:
            reading.fetchall()


def met_by(table: str) -> Callable[..., Any]:
    """For `execute_wrapper`: an INSERT into the table meets the lock."""

    def execute_or_meet(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(f'INSERT INTO "{table}"'):
            meet_a_lock()
        return execute(sql, params, many, context)

    return execute_or_meet


class Locked:
    """Whether a step meets a lock, and how often it has run."""

    def __init__(self, *, times: int) -> None:
        self.times_left = times
        self.tried: list[int] = []

    def write(self, ctx: Context) -> None:
        self.tried.append(ctx.attempt)
        leave_effect(ctx)
        if self.times_left:
            self.times_left -= 1
            meet_a_lock()


def writing(locked: Locked) -> type[Workflow[Any]]:
    class Writes(Workflow):
        name = "writes"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            locked.write(ctx)

    return Writes


def test_a_lock_that_is_gone_at_the_next_try_costs_no_attempt() -> None:
    locked = Locked(times=1)
    instance = settled(engine.start(writing(locked)))

    assert (instance.status, instance.attempts, instance.error) == ("completed", 0, None)
    assert locked.tried == [1, 1]
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_completed"]
    assert Effect.objects.count() == 1


@override_settings(WORKFLOW_ENGINE={"INFRASTRUCTURE_RETRIES": 1, "POSTPONE": 600})
def test_trouble_that_lasts_is_given_up_for_a_while_and_counts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    instance, other = engine.start(writing(Locked(times=2))), engine.start(OneStep)
    instance = settled(instance)

    assert (instance.status, instance.attempts, instance.recoveries, instance.error) == ("pending", 0, 0, None)
    assert seconds_until(instance.poll_at) in range(580, 601)
    assert kinds(instance) == ["workflow_started"]
    assert reload(other).status == "completed"
    told = [record for record in caplog.records if record.name == "workflow_engine" and record.exc_info]
    assert [(record.levelno, record.getMessage()) for record in told] == [
        (logging.WARNING, f"Database trouble with workflow instance {instance.pk}; it is tried again later")
    ]
    assert later(instance, seconds=600).status == "completed"


@override_settings(WORKFLOW_ENGINE={"INFRASTRUCTURE_RETRIES": 0, "POSTPONE": 60})
def test_trouble_however_often_is_never_poison() -> None:
    locked = Locked(times=15)
    instance = engine.start(writing(locked))
    while locked.times_left:
        drain()
        clock.shift(timedelta(seconds=61))

    row = reload(instance)
    assert (row.status, row.attempts, row.recoveries, kinds(row)) == ("pending", 0, 0, ["workflow_started"])
    assert settled(instance).status == "completed"
    assert len(locked.tried) == 16


def test_a_signals_handler_in_trouble_keeps_its_signal_and_uses_no_attempt() -> None:
    locked = Locked(times=1)

    class Writes(Workflow):
        name = "writes"

        @step(retry=TWICE)
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> None:
            locked.write(ctx)

    instance = settled(engine.start(Writes))
    engine.signal(instance, "go")
    instance = settled(instance)

    assert (instance.status, locked.tried, mailbox(instance)) == ("completed", [1, 1], [("go", "consumed")])
    assert len(events(instance, "signal_received")) == 1


@pytest.mark.parametrize("table", ["workflow_events", "test_shop_effect"])
def test_trouble_with_the_engines_own_statements_is_run_again_too(table: str) -> None:
    locked = Locked(times=0)
    instance = engine.start(writing(locked))
    wrapper, left = met_by(table), [True]

    def once(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if left and sql.startswith(f'INSERT INTO "{table}"'):
            left.clear()
            return wrapper(execute, sql, *rest)
        return execute(sql, *rest)

    with connection.execute_wrapper(once):
        engine.drive(instance)

    assert (reload(instance).status, locked.tried) == ("completed", [1, 1])
    assert Effect.objects.count() == 1


def test_an_error_that_only_says_so_is_the_steps_own() -> None:
    class Lies(Workflow):
        name = "lies"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            raise OperationalError("database is locked")

    instance = settled(engine.start(Lies))

    assert (instance.attempts, error_of(instance)) == (1, ("OperationalError", "database is locked"))


def test_trouble_of_another_database_is_the_steps_own(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    holder, other = (sqlite3.connect(path, isolation_level=None, timeout=0) for _ in range(2))

    class Writes(Workflow):
        name = "writes"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            holder.execute("BEGIN EXCLUSIVE")
            try:
                other.execute("CREATE TABLE t (x)")
            finally:
                holder.execute("ROLLBACK")

    instance = settled(engine.start(Writes))
    holder.close()
    other.close()

    assert (instance.attempts, error_of(instance)) == (1, ("OperationalError", "database is locked"))


def test_an_activity_in_trouble_has_run_so_its_attempt_counts() -> None:
    class Calls(Workflow):
        name = "calls"

        @activity(retry=TWICE)
        def work(self, ctx: Context) -> None:
            if ctx.attempt == 1:
                with transaction.atomic():
                    meet_a_lock()

    instance = settled(engine.start(Calls))
    assert (instance.attempts, error_of(instance)) == (1, ("OperationalError", "database table is locked"))

    assert later(instance, seconds=11).status == "completed"


@pytest.mark.parametrize("verb", ["signal", "start"])
def test_in_the_callers_transaction_trouble_is_raised_and_nothing_of_it_can_be_committed(verb: str) -> None:
    instance = settled(engine.start(WaitForGo))
    table = "workflow_signals" if verb == "signal" else "workflow_instances"
    with transaction.atomic(), connection.execute_wrapper(met_by(table)):
        Counter.objects.create(name="of the caller")
        with pytest.raises(OperationalError):
            engine.signal(instance, "go") if verb == "signal" else engine.start(OneStep)
        assert transaction.get_rollback()

    assert not Counter.objects.exists()
    assert mailbox(instance) == []
    assert WorkflowInstance.objects.count() == 1


def test_without_a_transaction_of_the_callers_the_verb_is_tried_again() -> None:
    instance = settled(engine.start(WaitForGo))
    left = [True]

    def once(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if left and sql.startswith('INSERT INTO "workflow_signals"'):
            left.clear()
            meet_a_lock()
        return execute(sql, *rest)

    with connection.execute_wrapper(once):
        engine.signal(instance, "go")

    assert mailbox(instance) == [("go", "pending")]
    assert settled(instance).status == "completed"


def test_an_advance_by_hand_raises_what_the_database_says_when_the_trouble_lasts() -> None:
    instance = engine.start(writing(Locked(times=1)))
    with override_settings(WORKFLOW_ENGINE={"INFRASTRUCTURE_RETRIES": 0}), pytest.raises(OperationalError):
        engine.advance(instance)

    assert WorkflowInstance.objects.get().attempts == 0
    assert engine.advance(instance).answer == Answer.ADVANCED
