"""Work outside any transaction: an activity's claim, its loss, and the poison that kills every process."""

from __future__ import annotations

from datetime import timedelta

from workflow_engine.domain.decisions.failure import decide_failure, next_undo
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.decisions.undo import decide_undo_failure
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status


def claim_attempt(journal: Journal, owner: str, lease: timedelta, rules: StepRules) -> None:
    """An attempt of the current activity starts: it counts from here on, whatever dies."""
    state = journal.state
    undo = {"visit": state.visit, "step": state.current_step, "state": "started"}
    journal.attempt = state.attempts + 1
    journal.add(
        EventKind.STEP_STARTED,
        undo=undo if rules.compensates else None,
        status=Status.IN_PROGRESS,
        attempts=journal.attempt,
        lease_token=state.lease_token + 1,
        lease_owner=owner,
        due_at=journal.now + lease,
    )


def decide_lost_attempt(journal: Journal, rules: StepRules) -> None:
    """The lease ran out with nothing recorded: a lost attempt, of which nobody knows what it did."""
    state = journal.state
    journal.attempt = state.attempts
    if any(entry["visit"] == state.visit for entry in state.compensation_stack):
        lost = {"visit": state.visit, "step": state.current_step, "state": "unknown", "lost": True}
    else:
        lost = None
    message = f"attempt {state.attempts} did not report within its lease; what it did is not known"
    failure = Failure(type="LeaseExpired", message=message)
    decide_failure(journal, failure, rules, lost=lost)


def decide_poison(journal: Journal, recoveries: int) -> None:
    """So many processes died on this instance that trying again would only kill more."""
    state = journal.state
    message = f"{recoveries} processes in a row died while they worked on it"
    failure = Failure(type="Poison", message=message, retryable=False)
    entry = next_undo(state) if state.status == Status.COMPENSATING else None
    if entry is None:
        journal.attempt = state.attempts
        decide_failure(journal, failure, StepRules())
    else:
        journal.attempt = entry.get("undo_attempts", 0)
        decide_undo_failure(journal, entry, failure, RetryPolicy())
