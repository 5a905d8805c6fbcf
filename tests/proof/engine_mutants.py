"""Mutants of the locked turn, the leases, the recovery and everything that meets the database."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from functools import partial
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import F, Max

from tests.proof import hunts, programs, wrong_clocks
from tests.proof.hunts import SERVERS, beside, crash_at
from tests.proof.mutants import Mutants, Patch, everywhere
from workflow_engine import after_commit, clock, dispatch, signals
from workflow_engine import tick as tick_module
from workflow_engine.domain.decisions import leases as lease_decisions
from workflow_engine.domain.decisions.failure import decide_failure
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.engine import (
    activities,
    advancing,
    claims,
    contexts,
    handing_out,
    leases,
    locking,
    sending,
    starting,
    store,
    user_code,
)
from workflow_engine.engine.turns import Advanced, Answer, Turn
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.models.identifiers import key_hash

mutants = Mutants()


# --- locks and versions -----------------------------------------------------------------------


def _read_without_a_lock(instance_id: Any, using: str) -> locking.Locked | None:
    rows = WorkflowInstance.objects.using(using).annotate(locked_at=clock.DatabaseNow())
    row = rows.filter(pk=instance_id).first()
    return None if row is None else locking.Locked(row, vars(row).pop("locked_at"))


@mutants.breaking(6, hunt=beside(programs.Slow, hunts.another_thread_takes_a_turn), on=SERVERS)
def no_lock(patch: Patch) -> None:
    """The row is read, not locked. The guarded UPDATE still refuses the second writer, but both have run the step."""
    everywhere(patch, locking.lock, _read_without_a_lock)


@mutants.breaking(1, 5, hunt=beside(programs.Slow, hunts.another_thread_takes_a_turn), on=SERVERS)
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


@mutants.breaking(2, hunt=hunts.commits_break_off)
def history_numbered_by_a_counter_that_is_not_rolled_back(patch: Patch) -> None:
    """Stands for "history from MAX()": under the lock MAX() gives what the row says, but a sequence of the database's
    leaves a gap wherever a transaction is rolled back.
    """
    write, given = store.write, dict[Any, int]()

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

    patch.setattr(store, "WorkflowEvent", _like(WorkflowEvent, objects=Later()))


@mutants.breaking(1, hunt=crash_at("rounds"))
def no_savepoint_around_the_handler(patch: Patch) -> None:
    """A failed attempt leaves what it wrote."""
    kept = _like(transaction, atomic=lambda using: nullcontext(), set_rollback=lambda *_, **__: None)
    patch.setattr(user_code, "transaction", kept)


@mutants.breaking(2, hunt=hunts.a_lock_is_waited_for_too_long, on=("mysql",))
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


@mutants.breaking(6, hunt=beside(programs.Stubborn, hunts.another_worker_looks))
def take_over_by_id_only(patch: Patch) -> None:
    """A lease is taken over without a look at its end."""
    is_due = advancing._is_due
    patch.setattr(advancing, "_is_due", lambda turn: bool(turn.state.lease_owner) or is_due(turn))


@mutants.breaking(11, hunt=crash_at("activity, once", "activity.after"))
def the_attempt_counted_when_its_result_is_recorded(patch: Patch) -> None:
    """Not at the claim: a crash is not counted, and what may run once runs again."""
    claim = lease_decisions.claim_attempt

    def uncounted(journal: Any, owner: str, lease: Any, rules: Any) -> None:
        before = journal.state.attempts
        add = journal.add
        with Patch.context() as inner:
            inner.setattr(journal, "add", lambda kind, **changes: add(kind, **{**changes, "attempts": before}))
            claim(journal, owner, lease, rules)

    patch.setattr(lease_decisions, "claim_attempt", uncounted)


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


@mutants.breaking(6, hunt=beside(programs.Stubborn, hunts.another_session_is_in_another_zone), on=("mysql",))
def now_of_mariadb(patch: Patch) -> None:
    """`NOW()`, as Django's Now() is there: the session's local time, taken for UTC."""
    local = "DATE_FORMAT(NOW(6), '%%Y-%%m-%%dT%%H:%%i:%%s.%%f')"
    patch.setitem(clock._EXPRESSIONS, "mysql", local)
    patch.setattr(locking, "_lock_sql", locking._lock_sql.__wrapped__)  # uncached


# --- after commit -----------------------------------------------------------------------------


@mutants.breaking(12, hunt=crash_at("start", "commit.before"))
def events_told_before_the_commit(patch: Patch) -> None:
    """Django signals are sent when the event is written."""

    def at_once(effects: after_commit.Effects, name: str, version: int, event: WorkflowEvent) -> None:
        if (signal := signals.BY_EVENT_KIND.get(event.kind)) is not None:
            signal.send_robust(None, event=event, instance_id=event.instance_id)

    patch.setattr(after_commit.Effects, "send", at_once)


@mutants.breaking(12, hunt=hunts.a_start_is_taken_back)
def the_hook_on_the_wrong_alias(patch: Patch) -> None:
    """Registered where no transaction is open, it runs at once: the job leaves before the commit."""

    def wake(effects: after_commit.Effects, instance_id: Any, queue: str, *_: Any) -> None:
        hand_out = partial(dispatch.wake, instance_id, queue=queue, using=effects.using)
        transaction.on_commit(hand_out, using="other")

    patch.setattr(after_commit.Effects, "wake", wake)


@mutants.breaking(3, hunt=hunts.commits_break_off)
def a_commit_of_unknown_outcome_taken_for_a_failure(patch: Patch) -> None:
    """The signal is sent once more, although it is there."""
    patch.setattr(sending._Sent, "was_committed", lambda _: False)


# --- recovery ---------------------------------------------------------------------------------


@mutants.breaking(9, hunt=crash_at("rounds, pushed", "hook.before"))
def no_tick(patch: Patch) -> None:
    """A job that is lost stays lost."""
    patch.setattr(tick_module._Tick, "run", lambda _: None)


@mutants.breaking(9, hunt=hunts.one_queue_takes_nothing)
def a_tick_that_stops_at_a_bad_row(patch: Patch) -> None:
    """What is behind it is never handed out."""

    def raising(tick: Any, job: Any) -> bool:
        dispatch.dispatcher().dispatch(job.instance_id, queue=job.queue, using=tick._using, delay=job.delay)
        return True

    patch.setattr(tick_module._Tick, "_dispatch", raising)


@mutants.breaking(9, hunt=crash_at("signal, pushed", "hook.before"))
def mail_that_nobody_was_woken_for_is_not_looked_for(patch: Patch) -> None:
    """The wake-up was lost with its sender, and the instance waits for nothing that time brings."""
    patch.setattr(tick_module, "_with_old_mail", lambda *_: iter(()))


@mutants.breaking(10, hunt=hunts.the_killer)
def the_recovery_counted_inside_the_transaction(patch: Patch) -> None:
    """The crash rolls the count back, so that nothing is ever poison."""

    def uncommitted(instance_id: Any, using: str) -> Advanced:
        return Advanced(Answer.SUSPECT, instance_id, using, more=True)

    patch.setattr(claims, "claim_suspect", uncommitted)


@mutants.breaking(10, hunt=hunts.a_long_backlog)
def counting_at_hand_out(patch: Patch) -> None:
    """Every message counts as a death, so that a long backlog is poison."""
    mark = handing_out._mark

    def counting(ids: Any, wanted: Any, using: str) -> Any:
        marked = mark(ids, wanted, using)
        rows = WorkflowInstance.objects.using(using).filter(pk__in=[job.instance_id for job in marked.jobs])
        rows.update(recoveries=F("recoveries") + 1, suspect=True)
        return marked

    patch.setattr(handing_out, "_mark", counting)


@mutants.breaking(10, hunt=hunts.all_deliveries_at_once)
def every_delivery_is_a_claim(patch: Patch) -> None:
    """A suspect stays one while somebody works on it, and whoever comes along counts a death."""
    patch.setattr(claims, "is_claimed", lambda *_: False)


# --- keys and code ----------------------------------------------------------------------------


@mutants.breaking(8, hunt=hunts.two_tenants_use_one_key)
def the_key_not_hashed(patch: Patch) -> None:
    """The unique column holds the key itself, folded as a database would; whose key it is gets lost."""

    def raw(*parts: str) -> str:
        return key_hash(*parts) if parts[-1].startswith("{") else parts[-1].strip().casefold()

    patch.setattr(starting, "key_hash", raw)


@mutants.breaking(8, hunt=hunts.a_start_is_repeated)
def the_key_not_looked_up(patch: Patch) -> None:
    """Each start is a new one."""

    def unique(*parts: str) -> str:
        return key_hash(*parts) if parts[-1].startswith("{") else secrets.token_hex(32)

    patch.setattr(starting, "key_hash", unique)


@mutants.breaking(14, hunt=hunts.somebody_else_runs_other_code)
def an_unknown_step_fails(patch: Patch) -> None:
    """What this process has no code for is taken for an error of the instance."""

    def fail(turn: Turn) -> Advanced:
        turn.journal.attempt = 1
        failure = Failure(type="UnknownStep", message="there is no such step", retryable=False)
        decide_failure(turn.journal, failure, StepRules())
        return turn.commit()

    patch.setattr(advancing, "_leave_to_others", fail)


def _like(original: Any, **changed: Any) -> Any:
    """The original, with some attributes changed."""

    class Like:
        def __getattr__(self, name: str) -> Any:
            return changed[name] if name in changed else getattr(original, name)

        def __call__(self, *arguments: Any, **more: Any) -> Any:
            return original(*arguments, **more)

    return Like()
