"""The hunts that have a name: what somebody does beside an activity or a step, and whole cases."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import connection, connections, transaction

from tests.proof import broker, programs, wrong_clocks
from tests.proof.cases import Case, fresh_world, judged
from tests.proof.clients import request, send, start
from tests.proof.crashing import crashed, interrupted
from tests.proof.deeds import interrupt_with
from tests.proof.faults import breaking_commits
from tests.proof.hunting import Attempt, after_a_backoff, another_worker_looks, at_the_second
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, until_quiet, work
from tests.proof.scenarios import PUSHING
from tests.traps.background import PATIENCE, connection_settings, in_thread
from workflow_engine import engine, failpoints
from workflow_engine.domain.registry import registry
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowInstance
from workflow_engine.tick import tick

# --- beside an activity or a step -------------------------------------------------------------


def another_worker_dies_with_it(_: UUID) -> None:
    """The lease runs out, the attempt is given up, and whoever makes the next one dies in it."""
    pass_time(LEASE * 1.1)
    work()
    assert crashed(after_a_backoff, "activity.before")


def another_worker_is_an_hour_ahead(instance: UUID) -> None:
    """By the clock of his machine."""
    with wrong_clocks.ahead(timedelta(hours=1)):
        another_worker_looks(instance)
        after_a_backoff()


def another_session_is_in_another_zone(instance: UUID) -> None:
    """Five and a half hours east."""
    with connection_settings(OPTIONS={"init_command": "SET SESSION time_zone = '+05:30'"}):
        another_worker_looks(instance)
        after_a_backoff()


def another_thread_takes_a_turn(instance: UUID) -> None:
    """While this one is in the middle of its transaction."""
    with suppress(Exception):
        in_thread(lambda: engine.advance(instance)).result(PATIENCE)


def somebody_cancels(instance: UUID) -> None:
    """And a worker looks at it."""
    request("cancel", instance)
    work()


# --- clients ----------------------------------------------------------------------------------


def two_tenants_use_one_key(attempt: Attempt) -> Case:
    """Each means his own order 7."""
    with fresh_world():
        for tenant in ("one", "another"):
            attempt(partial(start, programs.Ladder, "order 7", tenant=tenant))
        attempt(until_quiet)
        return judged()


def a_start_is_repeated(attempt: Attempt) -> Case:
    """By a client that did not hear the answer."""
    with fresh_world():
        for _ in range(2):
            attempt(partial(start, programs.Ladder, "order 7"))
        attempt(until_quiet)
        return judged()


def a_start_is_taken_back(attempt: Attempt) -> Case:
    """By its caller, whose transaction does not commit."""

    def change_ones_mind() -> None:
        with transaction.atomic():
            start(programs.Ladder, "order 7")
            transaction.set_rollback(True)

    with fresh_world(**PUSHING):
        attempt(change_ones_mind)
        attempt(until_quiet)
        return judged()


def a_signal_is_repeated(attempt: Attempt) -> Case:
    """By a client that did not hear the answer."""
    with fresh_world():
        instance = start(programs.Waiting, "the start")
        for _ in range(2):
            attempt(partial(send, instance, "maybe", "a call"))
        attempt(until_quiet)
        return judged()


def the_answer_to_a_signal_is_lost(attempt: Attempt) -> Case:
    """Its sender gave it no key, and does not know whether it is there."""
    with fresh_world():
        instance = start(programs.Waiting, "the start")
        with breaking_commits(carried_out=True):
            attempt(partial(engine.signal, instance, "maybe", {"call": "without a key"}))
        attempt(until_quiet)
        return judged()


def a_signal_is_handled_and_fails_once(attempt: Attempt) -> Case:
    """Judged between the two attempts of its handler."""
    with fresh_world():
        instance = start(programs.Approvals, "the start")
        attempt(work)
        send(instance, "approved", "the first")
        attempt(work)
        return judged(at_rest=False)


def an_answer_is_late_and_yet_there(attempt: Attempt) -> Case:
    """The deadline has passed, but nobody has looked since."""
    with fresh_world():
        instance = start(programs.Waiting, "the start")
        attempt(work)
        pass_time(programs.WAITS_FOR)
        send(instance, "yes", "the answer")
        pass_time(timedelta(seconds=1))
        attempt(work)
        attempt(until_quiet)
        return judged()


def somebody_cancels_after_the_end(attempt: Attempt) -> Case:
    """Too late."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        attempt(until_quiet)
        attempt(partial(somebody_cancels, instance))
        attempt(until_quiet)
        return judged()


# --- the database -----------------------------------------------------------------------------


def a_step_is_not_committed(attempt: Attempt) -> Case:
    """The connection breaks before its COMMIT arrives."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        with breaking_commits(carried_out=False):
            attempt(partial(drive, instance, "default"))
        attempt(until_quiet)
        return judged()


def a_step_loses_its_transaction(attempt: Attempt) -> Case:
    """Its failure is to be recorded in the next one; but before that has the lock, another worker gets on with it."""
    with fresh_world():
        instance = start(programs.Slow, "the start")
        interrupt_with(connection.close)
        faster = partial(another_thread_takes_a_turn, instance)
        with failpoints.installed(at_the_second("lock.before", faster)):
            attempt(partial(drive, instance, "default"))
        attempt(until_quiet)
        return judged()


def a_lock_is_waited_for_too_long(attempt: Attempt) -> Case:
    """Another session has written the event with the next number and does not end; MariaDB gives up waiting for it."""
    with fresh_world(), connection_settings(OPTIONS={"init_command": "SET SESSION innodb_lock_wait_timeout = 1"}):
        instance = start(programs.Ladder, "the start")
        other = connections.create_connection("default")
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute(
                "INSERT INTO workflow_events (instance_id, seq, kind, step, visit, attempt, actor, `trigger`, data,"
                " created_at) SELECT instance_id, 2, kind, step, visit, attempt, actor, `trigger`, data, created_at"
                " FROM workflow_events"
            )
        with failpoints.installed(at_the_second("history.before", other.rollback)):
            attempt(partial(drive, instance, "default"))
        other.close()
        attempt(until_quiet)
        return judged()


# --- code and failures ------------------------------------------------------------------------


def somebody_else_runs_other_code(attempt: Attempt) -> Case:
    """A process without the workflow looks at it before the right one does."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        with registry.isolated():
            registry._classes.clear()
            attempt(partial(drive, instance, "default"))
        attempt(until_quiet)
        return judged()


def nobody_repairs_it(attempt: Attempt) -> Case:
    """What fails goes on failing, as often as it is tried."""
    with fresh_world():
        start(programs.Repaired, "the start")
        attempt(work)
        attempt(after_a_backoff)
        return judged(at_rest=False)


def the_killer(attempt: Attempt) -> Case:
    """A step that kills whoever runs it; nobody should have to die more often than allowed."""
    with fresh_world(MAX_RECOVERIES=2):
        start(programs.Killer, "the killer")
        for _ in range(5):
            attempt(partial(crashed, until_quiet, "never"))
        return judged()


# --- recovery ---------------------------------------------------------------------------------


def one_queue_takes_nothing(attempt: Attempt) -> Case:
    """The first instance asks for a queue that is broken; behind it are others, whose jobs were lost."""
    with fresh_world(**PUSHING):
        broker.refusing.add("broken")
        broken = start(programs.Ladder, "the first", queue="broken")
        for key in ("the second", "the third"):
            start(programs.Ladder, key)
        broker.jobs.clear()
        pass_time(timedelta(minutes=2))
        attempt(partial(tick, "default"))
        broker.refusing.clear()
        for instance in [broken, *broker.deliveries()]:
            attempt(partial(drive, instance, "default"))
        return judged()


def a_long_backlog(attempt: Attempt) -> Case:
    """Handed out again and again while every worker is busy; all the messages arrive in the end."""
    with fresh_world(**PUSHING):
        start(programs.Ladder, "the start")
        for _ in range(8):
            pass_time(timedelta(minutes=2))
            attempt(partial(tick, "default"))
        for instance in broker.deliveries():
            attempt(partial(drive, instance, "default"))
        attempt(until_quiet)
        return judged()


def all_deliveries_at_once(attempt: Attempt) -> Case:
    """A suspect whose message was delivered many times, each delivery between the claim and the work of another one."""
    with fresh_world(MAX_RECOVERIES=2):
        instance = start(programs.Ladder, "the start")
        attempt(partial(crashed, work, "handler.before"))
        pass_time(timedelta(seconds=61))
        WorkflowInstance.objects.update(suspect=True)

        def deliver(more: int = 4) -> None:
            following = partial(deliver, more - 1) if more else None
            interrupted(partial(drive, instance, "default"), "suspect.after", following)

        attempt(deliver)
        attempt(until_quiet)
        return judged()
