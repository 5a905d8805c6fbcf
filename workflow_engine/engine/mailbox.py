"""The mailbox under the lock: requests are carried out, signals find the step that waits for them."""

from __future__ import annotations

from collections.abc import Iterable

from workflow_engine.domain.decisions import requests
from workflow_engine.domain.received import Signal
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import Status
from workflow_engine.engine.turns import Turn
from workflow_engine.models import WorkflowInstance, WorkflowSignal

Kind, Mail = WorkflowSignal.Kind, WorkflowSignal.State


def read(row: WorkflowInstance) -> list[WorkflowSignal]:
    """The rows still to be acted on, in order. A statement of its own, after the lock: a joined read would be stale."""
    return list(WorkflowSignal.objects.using(row._state.db).filter(instance_id=row.pk).unconsumed())


def sort(turn: Turn, items: Iterable[WorkflowSignal]) -> WorkflowSignal | None:
    """Carry out requests in order up to the first signal that the current wait takes, and return that signal.

    Signals that nothing waits for are kept for later; what an ended instance can't use is discarded. Rows behind the
    returned signal stay as they are: they see the instance as that signal leaves it.
    """
    kept: list[WorkflowSignal] = []
    taken = None
    for item in items:
        if item.kind != Kind.SIGNAL:
            _carry_out(turn, item)
        elif takes(turn.journal.state, item):
            taken = item
            break
        else:
            kept.append(item)
    _keep(turn, kept)
    return taken


def takes(state: State, item: WorkflowSignal) -> bool:
    """Whether the current wait takes this row. Names are compared here: databases fold case, accents and blanks."""
    waiting = state.status == Status.AWAITING and not state.paused and not state.handling
    return waiting and item.kind == Kind.SIGNAL and item.name in state.awaiting_signals


def look_again(turn: Turn) -> bool:
    """After a decision that parked or ended the instance: whether something in the mailbox can be acted on at once.

    What can't is sorted right away, in this same transaction.
    """
    items = read(turn.row)
    state = turn.journal.state
    if any(item.kind != Kind.SIGNAL or takes(state, item) for item in items):
        return True
    _keep(turn, items)
    return False


def consume(turn: Turn, item: WorkflowSignal, state: State) -> None:
    """Mark the row as consumed by the visit that `state` is in. Commits with the handler's outcome or not at all."""
    _mark(
        turn, [item], Mail.CONSUMED, consumed_at=turn.now, consumed_step=state.current_step, consumed_visit=state.visit
    )


def set_aside(turn: Turn) -> None:
    """Keep pending signals for whoever can run the instance: they are found again when it is polled."""
    signals = WorkflowSignal.objects.using(turn.using).filter(instance_id=turn.row.pk, kind=Kind.SIGNAL)
    signals.pending().update(state=Mail.BUFFERED)


def received(item: WorkflowSignal) -> Signal:
    """The row as the value a handler gets."""
    return Signal(
        id=item.pk,
        name=item.name,
        data=item.data,
        actor=item.actor,
        received_at=item.received_at,
        idempotency_key=item.idempotency_key,
    )


def _carry_out(turn: Turn, item: WorkflowSignal) -> None:
    journal = turn.journal
    journal.actor, journal.trigger = item.actor, f"signal:{item.pk}"
    data = item.data or {}
    if denied := requests.why_not(journal.state, item.kind):
        requests.deny(journal, item.kind, denied)
        _mark(turn, [item], Mail.REJECTED, reason=denied)
        return
    state = journal.state
    match item.kind:
        case Kind.CANCEL:
            requests.decide_cancel(journal, compensate=data["compensate"], reason=data["reason"])
        case Kind.PAUSE:
            requests.decide_pause(journal, data["reason"])
        case Kind.RESUME:
            requests.decide_resume(journal, data["reason"])
        case Kind.RETRY:
            requests.decide_retry(journal, data["reason"])
    consume(turn, item, state)


def _keep(turn: Turn, items: list[WorkflowSignal]) -> None:
    """Sort signals that nothing takes now."""
    state = turn.journal.state
    if state.is_terminal and state.status != Status.FAILED:
        _mark(turn, items, Mail.DISCARDED, reason=f"the instance had ended: {state.status}")
        return
    pending = [item for item in items if item.state == Mail.PENDING]
    keeps_all = turn.settings.SIGNALS_BUFFER_EARLY or state.status == Status.FAILED
    awaited = [item for item in pending if keeps_all or item.name in state.awaiting_signals]
    early = [item for item in pending if item not in awaited]
    _mark(turn, awaited, Mail.BUFFERED)
    _mark(turn, early, Mail.REJECTED, reason="it was not awaited, and SIGNALS_BUFFER_EARLY is False")


def _mark(turn: Turn, items: list[WorkflowSignal], state: WorkflowSignal.State, **values: object) -> None:
    """The instance's lock guards its mailbox: nobody else moves a row out of these states."""
    if items:
        rows = WorkflowSignal.objects.using(turn.using).filter(pk__in=[item.pk for item in items])
        rows.update(state=state, **values)
