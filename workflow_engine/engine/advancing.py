"""The heart: one turn of one instance in one row-locked transaction.

Lock, look, decide, run at most one piece of user code, write, commit; then what has to leave the transaction leaves.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from workflow_engine import conf
from workflow_engine.domain.decisions import leases
from workflow_engine.domain.decisions.failure import next_undo
from workflow_engine.domain.decisions.outcome import wake
from workflow_engine.domain.decisions.requests import carry_out_requested_cancel
from workflow_engine.domain.decisions.waiting import TIMEOUT
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.statuses import Status
from workflow_engine.engine import activities, claims, compensation, mailbox, steps, store
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.locking import lock, lock_waiting
from workflow_engine.engine.routing import queue_for
from workflow_engine.engine.scheduling import handed_out
from workflow_engine.engine.turns import Advanced, Answer, Mode, Turn
from workflow_engine.engine.user_code import UnrecordedFailureError
from workflow_engine.exceptions import PostponedError
from workflow_engine.models import WorkflowInstance, WorkflowSignal

_HANDOVER_PAUSE = timedelta(seconds=1)
"""Two releases that disagree about a step's queue pass its instances to and fro no faster than this."""


def advance(instance_id: UUID, using: str, mode: Mode) -> Advanced:
    """Take one turn, whole: an activity or undo that it claims is run and recorded too.

    Raises:
        DatabaseError: the database had trouble for longer than the retries last; nothing was written.
    """
    try:
        advanced = _committed_turn(instance_id, using, mode)
    except UnrecordedFailureError as broken:
        advanced = run_outermost(using, partial(_record_failure, instance_id, using, mode, broken))
    except PostponedError:
        advanced = run_outermost(using, partial(_postpone, instance_id, using, mode))
    return advanced if advanced.outside is None else advanced.outside()


def take_turn(instance_id: UUID, using: str, mode: Mode) -> Advanced:
    """The locked unit: call it inside a transaction.

    Raises:
        UnrecordedFailureError, PostponedError: to be recorded in a transaction of its own; this one is void.
    """
    # Who has claimed it waits for the lock: going away now would count as a death.
    locked = lock_waiting(instance_id, using) if mode.claimed else lock(instance_id, using)
    if locked is None:
        return _absent(instance_id, using)
    turn = Turn.begin(locked, using, mode)
    runnable = not turn.state.is_terminal and not turn.state.paused
    if runnable and (advanced := _not_for_this_driver(turn)) is not None:
        return advanced
    # Nothing ends a wait unseen: a signal may have come since the turn that began it.
    items = mailbox.read(turn.row) if mode.mail or turn.state.status == Status.AWAITING else []
    taken = mailbox.sort(turn, items)
    if turn.journal.events:
        # What a request changed is written first; the step that it may lead to gets a turn of its own.
        return turn.commit(mail=True)
    if turn.state.is_terminal:
        return turn.answer(Answer.ENDED)
    if turn.state.paused:
        return turn.answer(Answer.PAUSED)
    if taken is None and not _is_due(turn):
        return _not_due(turn)
    if not _has_code(turn):
        return _leave_to_others(turn)
    if turn.definition.version != turn.state.definition_version:
        turn.journal.add(EventKind.VERSION_CHANGED, definition_version=turn.definition.version)
    advanced = _act(turn, taken)
    # What is behind the signal in the mailbox comes before the step that the signal leads to.
    advanced.mail |= taken is not None and items[-1] is not taken
    return advanced


def _committed_turn(instance_id: UUID, using: str, mode: Mode) -> Advanced:
    """A turn in a transaction of its own. A deferred constraint that its step violates is found at COMMIT only, and is
    that step's failure.
    """
    taken: list[Advanced] = []

    def unit() -> Advanced:
        taken[:] = [take_turn(instance_id, using, mode)]
        return taken[0]

    try:
        return run_outermost(using, unit)
    except IntegrityError as error:
        if not taken or taken[0].refused is None:
            raise
        raise taken[0].refused(error) from error


def _act(turn: Turn, taken: WorkflowSignal | None) -> Advanced:
    """Do the one thing that is due. A visible signal beats the timeout, whenever it was received."""
    state = turn.state
    if taken is not None:
        return steps.handle_signal(turn, taken)
    match state.status:
        case Status.COMPENSATING:
            return compensation.undo_next(turn)
        case Status.SLEEPING:
            turn.journal.trigger = "timer"
            wake(turn.journal, turn.rules())
            return turn.commit(mail=turn.journal.state.is_terminal and mailbox.look_again(turn))
        case Status.AWAITING if state.handling in {"", TIMEOUT}:
            return steps.handle_timeout(turn)
        case Status.AWAITING:
            return steps.handle_signal(turn, _handled_signal(turn))
    if state.lease_owner:
        leases.decide_lost_attempt(turn.journal, turn.rules())
        carry_out_requested_cancel(turn.journal)
        return turn.commit(mail=turn.journal.state.is_terminal and mailbox.look_again(turn))
    if turn.step().declaration.is_activity:
        return activities.claim(turn)
    return steps.run_body(turn)


def _absent(instance_id: UUID, using: str) -> Advanced:
    """Locked by somebody who will look at the mailbox after their commit; or gone, and its mailbox goes too."""
    if WorkflowInstance.objects.using(using).filter(pk=instance_id).exists():
        return Advanced(Answer.LOCKED, instance_id, using)
    WorkflowSignal.objects.using(using).filter(instance_id=instance_id).delete()
    return Advanced(Answer.GONE, instance_id, using)


def _has_code(turn: Turn) -> bool:
    """Whether this process can do what is next. A class may have lost a step without a new version; that is no reason
    to fail what is in flight.
    """
    entry = next_undo(turn.state) if turn.state.status == Status.COMPENSATING else None
    needed = turn.state.current_step if entry is None else entry["step"]
    return turn.workflow is not None and needed in turn.workflow.steps


def _is_due(turn: Turn) -> bool:
    return turn.state.due_at is not None and turn.state.due_at <= turn.now


def _not_due(turn: Turn) -> Advanced:
    """An orderly end too: what a driver or a claim noted on the row is taken back."""
    row = turn.row
    if (row.poll_at, row.suspect, row.recoveries) != (row.due_at, False, 0):
        store.update(row, poll_at=row.due_at, suspect=False, recoveries=0)
    return turn.answer(Answer.NOT_DUE)


def _not_for_this_driver(turn: Turn) -> Advanced | None:
    """The answer if this driver may not run it: another one has claimed it, or serves its queue; or it has to be
    claimed first.
    """
    if not turn.mode.claimed and claims.is_claimed(turn.row, turn.now):
        return turn.answer(Answer.LOCKED)
    if _asks_for_another_queue(turn):
        return _hand_over(turn)
    return turn.answer(Answer.SUSPECT) if not turn.mode.claimed and claims.is_suspect(turn.row) else None


def _asks_for_another_queue(turn: Turn) -> bool:
    """Without code here nobody knows; then it is left to others in the usual way."""
    return turn.workflow is not None and not turn.mode.serves(queue_for(turn.row, turn.state))


def _hand_over(turn: Turn) -> Advanced:
    """Wake a worker of the right queue instead of touching anything: the message came by an older path."""
    mail = WorkflowSignal.objects.using(turn.using).filter(instance_id=turn.row.pk).pending()
    if not _is_due(turn) and not mail.exists():
        return _not_due(turn)
    store.update(turn.row, poll_at=handed_out(turn.now + _HANDOVER_PAUSE), **_without_this_claim(turn))
    turn.effects.wake(turn.row.pk, queue_for(turn.row, turn.state), _HANDOVER_PAUSE)
    return turn.answer(Answer.HANDED_OVER)


def _leave_to_others(turn: Turn) -> Advanced:
    """No code here can run it: look again later, and count nothing. Its mail is sorted, so that nobody polls for it."""
    mailbox.set_aside(turn)
    store.update(turn.row, poll_at=turn.now + turn.settings.duration("POSTPONE"), **_without_this_claim(turn))
    return turn.answer(Answer.NO_CODE)


def _without_this_claim(turn: Turn) -> dict[str, Any]:
    """A claim on a suspect instance is taken back; what other processes died of is still counted, and still suspect:
    else the row would look as if it were claimed until whoever it is left to looks at it.
    """
    recoveries = max(turn.row.recoveries - turn.mode.claimed, 0)
    return {"recoveries": recoveries, "suspect": turn.row.suspect or recoveries > 0}


def _postpone(instance_id: UUID, using: str, mode: Mode) -> Advanced:
    locked = lock(instance_id, using)
    return _absent(instance_id, using) if locked is None else _leave_to_others(Turn.begin(locked, using, mode))


def _record_failure(instance_id: UUID, using: str, mode: Mode, broken: UnrecordedFailureError) -> Advanced:
    """The failure of a handler whose own transaction could not record it; void if somebody wrote meanwhile."""
    locked = lock(instance_id, using)
    if locked is None or locked.row.version != broken.version:
        return _absent(instance_id, using)
    turn = Turn.begin(locked, using, mode)
    journal = turn.journal
    journal.attempt, journal.actor, journal.trigger = broken.attempt, broken.actor, broken.trigger
    broken.handler.fail(journal, broken.failure)
    return turn.commit(exc=broken.error)


def _handled_signal(turn: Turn) -> WorkflowSignal:
    """The row whose handler is to be called again: the same one, even if an older one has become visible."""
    signal_id = turn.state.handling.removeprefix("signal:")
    return WorkflowSignal.objects.using(turn.using).get(pk=signal_id)


def back_off(instance_id: UUID, using: str) -> None:
    """Give up on an instance for a while because of database trouble; that counts nothing."""
    delay: timedelta = conf.current().duration("POSTPONE")

    def unit() -> Advanced:
        locked = lock(instance_id, using)
        if locked is not None and locked.row.poll_at is not None:
            recoveries = max(locked.row.recoveries - 1, 0)
            store.update(locked.row, poll_at=locked.now + delay, recoveries=recoveries, suspect=recoveries > 0)
        return Advanced(Answer.DATABASE_TROUBLE, instance_id, using)

    run_outermost(using, unit)
