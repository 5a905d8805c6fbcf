"""Hunts: cases that provoke one kind of bug each. In the engine as it is they find nothing; they catch mutants."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, connections, transaction

from tests.proof import broker, ledger, programs, wrong_clocks
from tests.proof.cases import Case, fresh_world, judged, life_of
from tests.proof.clients import request, send, start
from tests.proof.crashing import Place, Work, crashed, interrupted, traced
from tests.proof.deeds import interrupt_with
from tests.proof.faults import breaking_commits
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, until_quiet, work
from tests.proof.scenarios import PUSHING, SCENARIOS
from tests.traps.background import connection_settings, in_thread
from workflow_engine import engine, failpoints
from workflow_engine.domain.registry import registry
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.tick import tick

Attempt = Callable[[Work], None]
"""How a part of a hunt is run: errors of a mutant must not hide what it did to the tables."""

Hunt = Callable[[Attempt], Case]

ALWAYS = ("sqlite", "postgresql", "mysql")
SERVERS = ("postgresql", "mysql")

SECOND = timedelta(seconds=1)


def strictly(part: Work) -> None:
    """Any error is one."""
    part()


def whatever_happens(part: Work) -> None:
    """An error of the mutant is noted, and the tables are judged all the same."""
    try:
        part()
    except Exception as error:  # noqa: BLE001 - a mutant may do anything
        ledger.write("broke", error=repr(error))
        if not connection.in_atomic_block:
            connection.close()


def crash_at(scenario: str, *places: Place, **settings: Any) -> Hunt:
    """Processes die at these places, one after the other."""
    found = next(each for each in SCENARIOS if each.name == scenario)

    def hunt(attempt: Attempt) -> Case:
        with life_of(found, **settings) as live:
            for place in places:
                attempt(partial(crashed, live, place))
            attempt(partial(traced, live))
            return judged()

    return hunt


def beside(program: Any, *works: Callable[[UUID], object], **settings: Any) -> Hunt:
    """While the activity runs, or the step, this happens."""

    def hunt(attempt: Attempt) -> Case:
        with fresh_world(**settings):
            instance = start(program, "the start")
            interrupt_with(lambda: [each(instance) for each in works])
            attempt(until_quiet)
            return judged()

    return hunt


def another_worker_looks(instance: UUID) -> None:
    """Mail comes, so that another worker looks at the instance now."""
    send(instance, "whatever", "mail")
    work()


def another_worker_dies_with_it(_: UUID) -> None:
    """The lease runs out, the attempt is given up, and whoever makes the next one dies in it."""
    pass_time(LEASE * 1.1)
    work()
    pass_time(11 * SECOND)
    assert crashed(work, "activity.before")


def another_worker_is_an_hour_ahead(instance: UUID) -> None:
    """By the clock of his machine; and he looks twice."""
    with wrong_clocks.ahead(timedelta(hours=1)):
        another_worker_looks(instance)
    with wrong_clocks.ahead(timedelta(hours=1, seconds=11)):
        work()


def another_session_is_in_another_zone(instance: UUID) -> None:
    """Five and a half hours east; and its worker looks twice."""
    with connection_settings(OPTIONS={"init_command": "SET SESSION time_zone = '+05:30'"}):
        another_worker_looks(instance)
        pass_time(11 * SECOND)
        work()


def another_thread_takes_a_turn(instance: UUID) -> None:
    """While this one is in the middle of its transaction."""
    with suppress(Exception):
        in_thread(lambda: engine.advance(instance)).result(timeout=20)


def cancel(instance: UUID) -> None:
    """Somebody cancels, and a worker looks at it."""
    request("cancel", instance)
    work()


def the_killer(attempt: Attempt) -> Case:
    """A step that kills whoever runs it; nobody should have to die more often than allowed."""
    with fresh_world():
        start(programs.Killer, "the killer")
        for _ in range(9):
            attempt(partial(crashed, until_quiet, "never"))
        return judged()


def somebody_looks(program: Any) -> Hunt:
    """While it waits for its time, mail comes that it does not want."""

    def hunt(attempt: Attempt) -> Case:
        with fresh_world():
            instance = start(program, "the start")
            attempt(work)
            pass_time(11 * SECOND)
            attempt(work)
            attempt(partial(another_worker_looks, instance))
            attempt(until_quiet)
            return judged()

    return hunt


def nobody_repairs_it(attempt: Attempt) -> Case:
    """What fails goes on failing."""
    with fresh_world():
        start(programs.Repaired, "the start")
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
        ledger.replace(entry for entry in ledger.read() if entry["what"] != "started")
        attempt(until_quiet)
        return judged()


def commits_break_off(attempt: Attempt) -> Case:
    """Those of a start, of a signal without a key, and of the steps; each of them in both ways."""
    with fresh_world():
        instance = start(programs.Waiting, "the start")
        for carried_out in (True, False):
            with breaking_commits(carried_out=carried_out):
                attempt(partial(start, programs.Ladder, f"a start, {carried_out}"))
            for after in range(5):
                attempt(partial(start, programs.Errands, f"{after}, {carried_out}"))
                with breaking_commits(carried_out=carried_out, after=after):
                    attempt(work)
        with breaking_commits(carried_out=True):
            attempt(lambda: engine.signal(instance, "maybe", {"call": "without a key"}))
        attempt(until_quiet)
        return judged()


def somebody_else_runs_other_code(attempt: Attempt) -> Case:
    """A process without the workflow looks at it before the right one does."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        with registry.isolated():
            registry._classes.clear()
            attempt(partial(drive, instance, "default"))
        attempt(until_quiet)
        return judged()


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


def a_request_after_the_end(attempt: Attempt) -> Case:
    """Somebody wants to cancel what is over."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        attempt(until_quiet)
        attempt(partial(cancel, instance))
        attempt(until_quiet)
        return judged()


def a_lock_is_waited_for_too_long(attempt: Attempt) -> Case:
    """Another session has written the event with the next number and does not end; MariaDB gives up waiting for it."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        other = connections.create_connection("default")
        other.set_autocommit(False)
        event = WorkflowEvent.objects.get(instance_id=instance)
        with other.cursor() as cursor:
            cursor.execute(
                "INSERT INTO workflow_events (instance_id, seq, kind, step, visit, attempt, actor, `trigger`, data,"
                " created_at) SELECT instance_id, 2, kind, step, visit, attempt, actor, `trigger`, data, created_at"
                " FROM workflow_events WHERE id = %s",
                [event.pk],
            )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        tries: list[str] = []

        def reached(name: str) -> None:
            if name == "history.before":
                tries.append(name)
                if len(tries) == 2:
                    other.rollback()

        with failpoints.installed(reached):
            # Not by a worker, whose connection may be a new one.
            attempt(partial(drive, instance, "default"))
        other.close()
        attempt(until_quiet)
        return judged()
