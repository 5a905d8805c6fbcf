"""Mutants of what is decided: the mailbox, waits, undo, ends, attempts."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from tests.proof import hunts, programs
from tests.proof.hunting import beside, crash_at, looked_at
from tests.proof.mutants import Mutants, Patch, everywhere
from workflow_engine.domain import state as states
from workflow_engine.domain.decisions import failure, leases, outcome, requests, undo, waiting
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status
from workflow_engine.engine import advancing, mailbox
from workflow_engine.engine.turns import Turn
from workflow_engine.models import WorkflowSignal

mutants = Mutants()


# --- the mailbox ------------------------------------------------------------------------------


@mutants.breaking(3, hunt=crash_at("early signal"))
def a_signal_dropped_when_nobody_awaits_it(patch: Patch) -> None:
    """Too early is taken for never."""

    def drop(turn: Turn, items: list[WorkflowSignal]) -> None:
        mailbox._mark(turn, items, mailbox.Mail.DISCARDED, reason="nobody awaits it")

    patch.setattr(mailbox, "_keep", drop)


@mutants.breaking(3, hunt=crash_at("signals"))
def the_last_signal_goes_first(patch: Patch) -> None:
    """The mailbox is read from the end."""
    read = mailbox.read
    patch.setattr(mailbox, "read", lambda row: read(row)[::-1])


@mutants.breaking(3, hunt=crash_at("signal"))
def a_signal_consumed_without_a_mark(patch: Patch) -> None:
    """The row stays as it was, for the next wait to take."""
    patch.setattr(mailbox, "consume", lambda *_: None)


@mutants.breaking(3, hunt=hunts.a_signal_is_handled_and_fails_once)
def a_signal_consumed_before_its_handler_succeeded(patch: Patch) -> None:
    """It is gone, whatever comes of the handler."""
    decide = waiting.decide_signal_failure

    def consumed(*arguments: Any) -> bool:
        decide(*arguments)
        return True

    patch.setattr(waiting, "decide_signal_failure", consumed)


@mutants.breaking(9, hunt=crash_at("early signal"))
def a_kept_signal_is_not_read_again(patch: Patch) -> None:
    """It was looked at when nobody awaited it, and that was that."""
    mail = WorkflowSignal.objects
    patch.setattr(mailbox, "read", lambda row: list(mail.using(row._state.db).filter(instance_id=row.pk).pending()))


@mutants.breaking(4, hunt=hunts.an_answer_is_late_and_yet_there)
def a_timeout_that_beats_a_visible_signal(patch: Patch) -> None:
    """Once the deadline has passed, nobody asks whether the answer is there."""
    sort = mailbox.sort

    def too_late(turn: Turn, items: list[WorkflowSignal]) -> WorkflowSignal | None:
        over = turn.state.status == Status.AWAITING and advancing._is_due(turn)
        return None if over else sort(turn, items)

    patch.setattr(mailbox, "sort", too_late)


@mutants.breaking(4, hunt=looked_at(programs.Waiting, after=programs.WAITS_FOR))
def a_timeout_that_ignores_the_visit(patch: Patch) -> None:
    """The timer of the first wait ends whatever wait is on when somebody looks. No message carries a timeout here, it
    is read from the row; so the mutant has a memory.
    """
    is_due, timers = advancing._is_due, dict[UUID, datetime]()

    def rings(turn: Turn) -> bool:
        deadline = turn.state.deadline_at
        if turn.state.status != Status.AWAITING or deadline is None:
            return is_due(turn)
        return timers.setdefault(turn.row.pk, deadline) <= turn.now

    patch.setattr(advancing, "_is_due", rings)


@mutants.breaking(11, hunt=looked_at(programs.Rounds, after=programs.BACKOFF))
def a_sleep_that_ends_when_somebody_looks(patch: Patch) -> None:
    """Before its time."""
    is_due = advancing._is_due
    patch.setattr(advancing, "_is_due", lambda turn: turn.state.status == Status.SLEEPING or is_due(turn))


# --- undo -------------------------------------------------------------------------------------


@mutants.breaking(7, hunt=crash_at("undo"))
def undo_in_ascending_order(patch: Patch) -> None:
    """What was done first is undone first."""

    def first(state: states.State) -> dict[str, Any] | None:
        return next((dict(entry) for entry in state.compensation_stack if failure._undoable(entry)), None)

    everywhere(patch, failure.next_undo, first)


@mutants.breaking(7, hunt=crash_at("undo", "record.after"))
def undo_not_recorded(patch: Patch) -> None:
    """What is undone is known to the process alone, which dies."""
    done: set[int] = set()

    def not_done(state: states.State) -> dict[str, Any] | None:
        entries = reversed(state.compensation_stack)
        return next((dict(e) for e in entries if failure._undoable(e) and e["visit"] not in done), None)

    def forget(journal: Any, entry: Any) -> None:
        done.add(entry["visit"])
        about = {"visit": entry["visit"], "step": entry["step"]}
        journal.add(EventKind.STEP_COMPENSATED, undo=about, lease_owner="", due_at=journal.now)
        undo.settle(journal)

    everywhere(patch, failure.next_undo, not_done)
    patch.setattr(undo, "decide_undone", forget)


@mutants.breaking(6, hunt=beside(programs.Stubborn, hunts.somebody_cancels))
def undo_beside_a_live_lease(patch: Patch) -> None:
    """A cancellation does not wait for the activity."""

    def at_once(journal: Any, *, compensate: bool, reason: str) -> None:
        requests._cancel(journal, compensate=compensate, reason=reason)

    patch.setattr(requests, "decide_cancel", at_once)


@mutants.breaking(7, hunt=crash_at("activity, once", "activity.after"))
def a_lost_attempt_is_taken_for_one_that_did_nothing(patch: Patch) -> None:
    """It is not offered for undo, although nobody knows what it did."""
    decide = failure.decide_failure

    def known(*arguments: Any, lost: Any = None, **more: Any) -> None:
        decide(*arguments, lost=lost and {**lost, "state": "known_failure", "lost": False}, **more)

    patch.setattr(leases, "decide_failure", known)


# --- ends, visits and attempts ----------------------------------------------------------------


@mutants.breaking(13, hunt=hunts.somebody_cancels_after_the_end)
def the_end_is_not_checked(patch: Patch) -> None:
    """A request is carried out whatever the status; nor does the table of transitions stop it."""
    everywhere(patch, requests.why_not, lambda *_: None)
    patch.setattr(states, "check_transition", lambda *_: None)


@mutants.breaking(5, hunt=crash_at("rounds"))
def a_loop_that_stays_in_its_visit(patch: Patch) -> None:
    """The second round is taken for the first one: its key is the same, and its results come twice."""
    entry = outcome._entry
    patch.setattr(outcome, "_entry", lambda journal, index: {**entry(journal, index), "visit": journal.state.visit})


@mutants.breaking(11, hunt=hunts.nobody_repairs_it)
def an_attempt_more_than_allowed(patch: Patch) -> None:
    """Every policy allows another one."""
    patch.setattr(RetryPolicy, "allows_another", lambda *_: True)
