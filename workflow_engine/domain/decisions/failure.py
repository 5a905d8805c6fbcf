"""What a failed attempt does to the instance: another try, an undo, or the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import Status


def is_final(failure: Failure, attempt: int, rules: StepRules) -> bool:
    """Whether this failure of attempt number `attempt` leaves no further one."""
    return not failure.retryable or not rules.retry.allows_another(attempt)


def decide_failure(
    journal: Journal,
    failure: Failure,
    rules: StepRules,
    *,
    handling: str = "",
    lost: Mapping[str, Any] | None = None,
) -> None:
    """Attempt number `journal.attempt` failed: try again after the policy's delay, or fail the workflow.

    Args:
        journal: the sheet to write on.
        failure: what happened.
        rules: of the current step.
        handling: the handler that failed, which a retry calls again; "" for the step's body.
        lost: the undo entry of an attempt that was lost, of which nobody knows what it did.
    """
    state, attempt = journal.state, journal.attempt
    final = is_final(failure, attempt, rules)
    error = failure.as_error(state.current_step, state.visit, attempt)
    told: dict[str, Any] = {"error": error, "final": final}
    if failure.traceback:
        told["traceback"] = failure.traceback
    changes: dict[str, Any] = {"attempts": attempt, "lease_owner": "", "handling": handling, "error": error}
    undo = _settled_attempt(state, failure) if lost is None else lost
    if final:
        journal.add(EventKind.STEP_FAILED, undo=undo, data=told, **changes)
        # A cancellation that waited for this attempt is carried out instead, by whoever recorded it.
        if state.cancel_requested is None:
            fail_workflow(journal)
        return
    status = Status.AWAITING if handling else Status.IN_PROGRESS
    due_at = journal.now + failure.delay(rules.retry, attempt)
    journal.add(EventKind.STEP_FAILED, undo=undo, data=told, **changes, status=status, due_at=due_at)


def fail_workflow(journal: Journal) -> None:
    """No attempt is left: undo what can be undone, else end as failed."""
    stopped: Mapping[str, Any] = {"awaiting_signals": [], "deadline_at": None, "cancel_requested": None}
    if next_undo(journal.state) is None:
        ended = {**stopped, "status": Status.FAILED, "due_at": None, "ends_as": "", "paused": False}
        journal.add(EventKind.WORKFLOW_FAILED, data={"error": journal.state.error}, **ended)
    else:
        start_undo(journal, ends_as=Status.COMPENSATED, reason="")


def start_undo(journal: Journal, *, ends_as: Status, reason: str, **changes: Any) -> None:
    """From here on only compensations run; `ends_as` is where they lead when all of them succeed."""
    journal.add(
        EventKind.WORKFLOW_COMPENSATING,
        data={"ends_as": ends_as, **({"reason": reason} if reason else {})},
        status=Status.COMPENSATING,
        ends_as=ends_as,
        due_at=journal.now,
        awaiting_signals=[],
        deadline_at=None,
        handling="",
        cancel_requested=None,
        **changes,
    )


def next_undo(state: State) -> dict[str, Any] | None:
    """The entry of the compensation stack to undo next: the latest that is neither undone nor given up."""
    return next((dict(entry) for entry in reversed(state.compensation_stack) if _undoable(entry)), None)


def _undoable(entry: Mapping[str, Any]) -> bool:
    """Not an attempt that is known to have failed, and neither undone nor given up."""
    return entry["state"] != "known_failure" and "undo" not in entry


def _settled_attempt(state: State, failure: Failure) -> dict[str, Any] | None:
    """The undo entry of an activity whose attempt failed: nothing to undo only if all of the visit said so."""
    entry = next((entry for entry in state.compensation_stack if entry["visit"] == state.visit), None)
    if entry is None or entry["state"] != "started":
        return None
    known = failure.stated and not entry.get("lost")
    told = {"state": "known_failure"} if known else {"state": "unknown", "lost": True}
    return {"visit": state.visit, "step": state.current_step, **told}
