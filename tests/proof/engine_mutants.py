"""Mutants of the locked turn, its history, leases, attempts, clocks, keys, and of code that is not there."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import ANY
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Max

from tests.proof import hunts, programs, wrong_clocks
from tests.proof.hunting import another_worker_looks, beside, crash_at
from tests.proof.mutants import MARIADB, WITH_ROW_LOCKS, Mutants, Patch, everywhere, like
from workflow_engine import clock
from workflow_engine.domain.decisions import leases as lease_decisions
from workflow_engine.domain.decisions.failure import decide_failure
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.journal import Journal
from workflow_engine.engine import (
    activities,
    advancing,
    contexts,
    leases,
    locking,
    sending,
    starting,
    store,
    user_code,
)
from workflow_engine.engine.turns import Advanced, Mode, Turn
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.models.identifiers import key_hash

mutants = Mutants()


# --- locks and versions -----------------------------------------------------------------------


def _read_without_a_lock(instance_id: UUID, using: str) -> locking.Locked | None:
    rows = WorkflowInstance.objects.using(using).annotate(locked_at=clock.DatabaseNow())
    row = rows.filter(pk=instance_id).first()
    return None if row is None else locking.Locked(row, vars(row).pop("locked_at"))


@mutants.breaking(6, hunt=beside(programs.Slow, hunts.another_thread_takes_a_turn), databases=WITH_ROW_LOCKS)
def no_lock(patch: Patch) -> None:
    """The row is read, not locked. The guarded UPDATE still refuses the second writer, but both have run the step."""
    everywhere(patch, locking.lock, _read_without_a_lock)


@mutants.breaking(5, hunt=beside(programs.Slow, hunts.another_thread_takes_a_turn), databases=WITH_ROW_LOCKS)
def no_version_guard_and_history_numbered_by_max(patch: Patch) -> None:
    """The UPDATE names the id alone. While the lock holds nobody can tell; so the lock is gone too, and each event gets
    the number after the highest one, or else the unique numbers would refuse the second writer.
    """
    no_lock(patch)
    write = store.write

    def unguarded(row: WorkflowInstance, **values: Any) -> None:
        WorkflowInstance.objects.using(row._state.db).filter(pk=row.pk).update(**values)
        for name, value in values.items():
            setattr(row, name, value)

    def numbered_by_max(row: WorkflowInstance, journal: Any, **bookkeeping: Any) -> list[WorkflowEvent]:
        events = WorkflowEvent.objects.using(row._state.db).filter(instance_id=row.pk)
        row.last_seq = events.aggregate(last=Max("seq"))["last"]
        return write(row, journal, **bookkeeping)

    patch.setattr(store, "update", unguarded)
    patch.setattr(store, "write", numbered_by_max)


@mutants.breaking(14, hunt=hunts.a_step_loses_its_transaction, databases=WITH_ROW_LOCKS)
def no_version_guard_when_a_failure_is_recorded(patch: Patch) -> None:
    """A step took its transaction with it, and what failed is recorded in whatever the instance is by now."""
    record = advancing._record_failure

    def unguarded(instance_id: UUID, using: str, mode: Mode, broken: user_code.UnrecordedFailureError) -> Advanced:
        broken.version = ANY
        return record(instance_id, using, mode, broken)

    patch.setattr(advancing, "_record_failure", unguarded)


@mutants.breaking(2, hunt=hunts.a_step_is_not_committed)
def history_numbered_by_a_counter_that_is_not_rolled_back(patch: Patch) -> None:
    """As a sequence of the database's is: it leaves a gap wherever a transaction is rolled back."""
    write, given = store.write, dict[UUID, int]()

    def counted(row: WorkflowInstance, journal: Any, **bookkeeping: Any) -> list[WorkflowEvent]:
        row.last_seq = max(row.last_seq, given.get(row.pk, 0))
        events = write(row, journal, **bookkeeping)
        given[row.pk] = row.last_seq
        return events

    patch.setattr(store, "write", counted)


@mutants.breaking(2, hunt=crash_at("steps", "hook.before"))
def history_written_after_the_commit(patch: Patch) -> None:
    """The events follow when the row is safe, so they may not follow."""
    manager = WorkflowEvent.objects.using("default")

    class Later:
        def using(self, alias: str) -> Later:
            return self

        def bulk_create(self, events: list[WorkflowEvent]) -> list[WorkflowEvent]:
            transaction.on_commit(lambda: manager.bulk_create(events))
            return events

    patch.setattr(store, "WorkflowEvent", like(WorkflowEvent, objects=Later()))


@mutants.breaking(1, hunt=crash_at("rounds"))
def no_savepoint_around_the_handler(patch: Patch) -> None:
    """A failed attempt leaves what it wrote."""
    kept = like(transaction, atomic=lambda using: nullcontext(), set_rollback=lambda *_, **__: None)
    patch.setattr(user_code, "transaction", kept)


@mutants.breaking(2, hunt=hunts.a_lock_is_waited_for_too_long, databases=MARIADB)
def a_lock_wait_timeout_is_swallowed(patch: Patch) -> None:
    """1205 rolls back one statement, the rest is committed."""
    write = store.write

    def swallowing(row: WorkflowInstance, journal: Any, **bookkeeping: Any) -> list[WorkflowEvent]:
        try:
            return write(row, journal, **bookkeeping)
        except OperationalError as error:
            if error.args[0] != 1205:
                raise
            transaction.set_rollback(False, using=row._state.db)
            return [store._stored(row, row.last_seq, journal.events[-1])]

    patch.setattr(store, "write", swallowing)


# --- leases and attempts ----------------------------------------------------------------------


@mutants.breaking(5, hunt=beside(programs.Stubborn, hunts.another_worker_dies_with_it))
def no_lease_check(patch: Patch) -> None:
    """Whoever comes with a result may record it."""
    patch.setattr(leases.HeldLease, "holds", lambda *_: True)


@mutants.breaking(6, hunt=beside(programs.Stubborn, another_worker_looks))
def take_over_by_id_only(patch: Patch) -> None:
    """A lease is taken over without a look at its end."""
    is_due = advancing._is_due
    patch.setattr(advancing, "_is_due", lambda turn: bool(turn.state.lease_owner) or is_due(turn))


@mutants.breaking(11, hunt=crash_at("activity, once", "activity.after"))
def attempts_counted_inside_the_transaction_that_records(patch: Patch) -> None:
    """Not at the claim: a crash is not counted, and what may run once runs again."""
    claim, make = lease_decisions.claim_attempt, contexts.make_context

    def uncounted(journal: Journal, *arguments: Any) -> None:
        before = journal.state.attempts
        claim(journal, *arguments)
        journal.state = replace(journal.state, attempts=before)
        claimed = journal.events.pop()
        journal.events.append(replace(claimed, changes={**claimed.changes, "attempts": before}))

    def numbered(*arguments: Any, attempt: int, **more: Any) -> Any:
        return make(*arguments, attempt=attempt + 1, **more)

    patch.setattr(lease_decisions, "claim_attempt", uncounted)
    patch.setattr(activities, "make_context", numbered)


@mutants.breaking(5, hunt=crash_at("activities"))
def the_attempt_is_part_of_the_idempotency_key(patch: Patch) -> None:
    """A new key for each attempt, so that the receiver takes each for a new order."""
    make = contexts.make_context

    def keyed(*arguments: Any, attempt: int, **more: Any) -> Any:
        with Patch.context() as inner:
            inner.setattr(contexts, "idempotency_key", lambda *parts: key_hash(*map(str, parts), str(attempt)))
            return make(*arguments, attempt=attempt, **more)

    patch.setattr(activities, "make_context", keyed)


@mutants.breaking(6, hunt=beside(programs.Stubborn, hunts.another_worker_is_an_hour_ahead))
def the_clock_of_the_machine(patch: Patch) -> None:
    """Each process believes its own clock."""
    everywhere(patch, clock.parse, lambda _: wrong_clocks.now())


@mutants.breaking(6, hunt=beside(programs.Stubborn, hunts.another_session_is_in_another_zone), databases=MARIADB)
def now_of_mariadb(patch: Patch) -> None:
    """`NOW()`, as Django's Now() is there: the session's local time, taken for UTC."""
    local = "DATE_FORMAT(NOW(6), '%%Y-%%m-%%dT%%H:%%i:%%s.%%f')"
    patch.setitem(clock._EXPRESSIONS, "mysql", local)
    patch.setattr(locking, "_lock_sql", locking._lock_sql.__wrapped__)  # uncached


# --- keys and code ----------------------------------------------------------------------------


@mutants.breaking(8, hunt=hunts.two_tenants_use_one_key)
def the_key_not_hashed(patch: Patch) -> None:
    """The unique column holds the key itself, folded as a database would; whose key it is gets lost."""

    def raw(*parts: str) -> str:
        return key_hash(*parts) if parts[-1].startswith("{") else parts[-1].strip().casefold()

    patch.setattr(starting, "key_hash", raw)


@mutants.breaking(8, hunt=hunts.a_start_is_repeated)
def the_key_of_a_start_not_looked_up(patch: Patch) -> None:
    """Each start is a new one."""

    def unique(*parts: str) -> str:
        return key_hash(*parts) if parts[-1].startswith("{") else secrets.token_hex(32)

    patch.setattr(starting, "key_hash", unique)


@mutants.breaking(3, hunt=hunts.a_signal_is_repeated)
def the_key_of_a_signal_not_looked_up(patch: Patch) -> None:
    """Each message is a new one."""
    patch.setattr(sending, "key_hash", lambda *_: secrets.token_hex(32))


@mutants.breaking(14, hunt=hunts.somebody_else_runs_other_code)
def an_unknown_step_fails(patch: Patch) -> None:
    """What this process has no code for is taken for an error of the instance."""

    def fail(turn: Turn) -> Advanced:
        turn.journal.attempt = 1
        failure = Failure(type="UnknownStep", message="there is no such step", retryable=False)
        decide_failure(turn.journal, failure, StepRules())
        return turn.commit()

    patch.setattr(advancing, "_leave_to_others", fail)
