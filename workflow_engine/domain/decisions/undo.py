"""Compensation: one entry of the stack at a time, the latest first, each recorded before the next begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from workflow_engine.domain.decisions.failure import next_undo
from workflow_engine.domain.decisions.rules import Failure
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status


def claim_undo(journal: Journal, entry: Mapping[str, Any], owner: str, lease: timedelta) -> None:
    """An attempt to undo `entry` starts under a lease; like an activity's attempt it counts from here on."""
    journal.attempt = entry.get("undo_attempts", 0) + 1
    journal.add(
        EventKind.COMPENSATION_STARTED,
        undo={"visit": entry["visit"], "step": entry["step"], "undo_attempts": journal.attempt},
        lease_token=journal.state.lease_token + 1,
        lease_owner=owner,
        due_at=journal.now + lease,
    )


def decide_undone(journal: Journal, entry: Mapping[str, Any]) -> None:
    """`entry` is undone, for good; on to the next one, or to the end."""
    journal.add(
        EventKind.STEP_COMPENSATED,
        undo={"visit": entry["visit"], "step": entry["step"], "undo": "done"},
        lease_owner="",
        due_at=journal.now,
    )
    settle(journal)


def decide_undo_failure(journal: Journal, entry: Mapping[str, Any], failure: Failure, policy: RetryPolicy) -> None:
    """An attempt to undo `entry` failed: try again, or give this entry up and carry on with the others."""
    error = failure.as_error(entry["step"], entry["visit"], journal.attempt)
    told = {"error": error, **({"traceback": failure.traceback} if failure.traceback else {})}
    undo = {"visit": entry["visit"], "step": entry["step"], "undo_attempts": journal.attempt}
    if failure.retryable and policy.allows_another(journal.attempt):
        journal.add(
            EventKind.COMPENSATION_ATTEMPT_FAILED,
            undo=undo,
            data=told,
            lease_owner="",
            due_at=journal.now + failure.delay(policy, journal.attempt),
            error=error,
        )
        return
    give_up = {**undo, "undo": "failed"}
    journal.add(EventKind.COMPENSATION_FAILED, undo=give_up, data=told, lease_owner="", due_at=journal.now, error=error)
    settle(journal)


def settle(journal: Journal) -> None:
    """When nothing is left to undo, end where the undo leads; `failed` if a part could not be undone."""
    state = journal.state
    if next_undo(state) is not None:
        return
    if any(entry.get("undo") == "failed" for entry in state.compensation_stack):
        kind, status = EventKind.WORKFLOW_FAILED, Status.FAILED
    elif state.ends_as == Status.CANCELLED:
        kind, status = EventKind.WORKFLOW_CANCELLED, Status.CANCELLED
    else:
        kind, status = EventKind.WORKFLOW_COMPENSATED, Status.COMPENSATED
    failed = status == Status.FAILED
    # A failed one remembers where its undo was to lead: a retry() takes it up again.
    ends_as = state.ends_as if failed else ""
    journal.add(
        kind, data={"error": state.error} if failed else None, status=status, ends_as=ends_as, due_at=None, paused=False
    )
