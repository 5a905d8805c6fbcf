"""What a person asks for: cancel, pause, resume, retry. Each is refused with a reason, or carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflow_engine.domain.decisions.failure import next_undo, start_undo
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import Status


def why_not(state: State, request: str) -> str | None:
    """Why `request` ("cancel", "pause", "resume", "retry" or "signal") makes no sense now, with the remedy; or None."""
    match request:
        case "retry":
            return None if state.status == Status.FAILED else "Only a failed instance can be retried."
        case "signal" if state.status == Status.FAILED:
            return "Retry it first, then send the signal."
        case _ if state.is_terminal:
            return "It has ended and can't be changed any more."
        case "cancel" if state.status == Status.COMPENSATING:
            return "Its steps are already being undone."
        case "cancel" if state.cancel_requested:
            return "A cancellation was already requested."
        case "pause" if state.paused:
            return "It is paused already."
        case "resume" if not state.paused:
            return "It is not paused."
    return None


def deny(journal: Journal, request: str, reason: str) -> None:
    """Record that `request` was refused; the instance stays as it is."""
    journal.add(EventKind.REQUEST_DENIED, data={"request": request, "reason": reason})


def decide_cancel(journal: Journal, *, compensate: bool, reason: str) -> None:
    """Cancel now; or, while an activity is out under a lease, as soon as that is recorded or its lease ends."""
    if journal.state.lease_owner:
        request = {"compensate": compensate, "reason": reason, "actor": journal.actor}
        journal.add(EventKind.CANCEL_REQUESTED, data={"reason": reason}, cancel_requested=request, paused=False)
    else:
        _cancel(journal, compensate=compensate, reason=reason)


def carry_out_requested_cancel(journal: Journal) -> None:
    """The lease is over: carry out the cancellation that waited for it, unless the instance has ended meanwhile."""
    request = journal.state.cancel_requested
    if request and not journal.state.is_terminal and journal.state.status != Status.COMPENSATING:
        journal.actor = request["actor"]
        _cancel(journal, compensate=request["compensate"], reason=request["reason"])


def decide_pause(journal: Journal, reason: str) -> None:
    """Nothing but its mailbox moves a paused instance."""
    journal.add(EventKind.WORKFLOW_PAUSED, data={"reason": reason} if reason else None, paused=True)


def decide_resume(journal: Journal, reason: str) -> None:
    """Go on where it stood; what became due meanwhile is due now."""
    journal.add(EventKind.WORKFLOW_RESUMED, data={"reason": reason} if reason else None, paused=False)


def decide_retry(journal: Journal, reason: str) -> None:
    """Arm a failed instance again: unfinished undos if that is what failed, else the failed handler or step.

    The visit stays, and with it the idempotency key; the attempts start afresh.
    """
    state = journal.state
    told = {"reason": reason} if reason else None
    if any(entry.get("undo") == "failed" for entry in state.compensation_stack):
        journal.add(
            EventKind.WORKFLOW_RETRIED,
            data=told,
            status=Status.COMPENSATING,
            error=None,
            due_at=journal.now,
            compensation_stack=[_offered_again(entry) for entry in state.compensation_stack],
        )
        return
    status = Status.AWAITING if state.handling else Status.IN_PROGRESS
    journal.add(
        EventKind.WORKFLOW_RETRIED,
        data=told,
        status=status,
        attempts=0,
        error=None,
        due_at=journal.now,
        visits_since_park=0,
    )


def _offered_again(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """An undo that was given up, with fresh attempts; every other entry as it is."""
    if entry.get("undo") != "failed":
        return entry
    return {key: value for key, value in entry.items() if key not in {"undo", "undo_attempts"}}


def _cancel(journal: Journal, *, compensate: bool, reason: str) -> None:
    if compensate and next_undo(journal.state):
        start_undo(journal, ends_as=Status.CANCELLED, reason=reason, paused=False)
        return
    journal.add(
        EventKind.WORKFLOW_CANCELLED,
        data={"reason": reason} if reason else None,
        status=Status.CANCELLED,
        due_at=None,
        awaiting_signals=[],
        deadline_at=None,
        handling="",
        cancel_requested=None,
        paused=False,
    )
