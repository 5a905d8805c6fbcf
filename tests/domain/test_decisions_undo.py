from __future__ import annotations

from datetime import timedelta
from functools import reduce
from typing import Any

import pytest

from tests.domain.decided import NOON, kinds, on_step
from workflow_engine.domain.decisions.rules import Failure
from workflow_engine.domain.decisions.undo import claim_undo, decide_undo_failure, decide_undone
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.state import apply
from workflow_engine.domain.statuses import Status

FIRST = {"visit": 1, "step": "one", "state": "completed", "result": "r"}
SECOND = {"visit": 2, "step": "two", "state": "unknown", "lost": True}
POLICY = RetryPolicy(max_attempts=2, initial_delay=10, jitter=False)
RAISED = Failure(type="OSError", message="closed", traceback="…")


def undoing(*stack: dict[str, Any], ends_as: str = "compensated", **changes: Any) -> Journal:
    return on_step("three", status=Status.COMPENSATING, ends_as=ends_as, compensation_stack=list(stack), **changes)


def test_a_claim_counts_the_attempt_at_this_entry_and_raises_the_token() -> None:
    journal = undoing(FIRST, {**SECOND, "undo_attempts": 1}, lease_token=3)

    claim_undo(journal, journal.state.compensation_stack[1], "me", timedelta(seconds=60))

    state = journal.state
    assert (state.lease_token, state.lease_owner, state.due_at) == (4, "me", NOON + timedelta(seconds=60))
    assert state.compensation_stack == [FIRST, {**SECOND, "undo_attempts": 2}]
    (event,) = journal.events
    assert (event.step, event.visit, event.attempt) == ("two", 2, 2)


@pytest.mark.parametrize(
    ("ends_as", "kind", "status"),
    [
        ("compensated", "workflow_compensated", Status.COMPENSATED),
        ("cancelled", "workflow_cancelled", Status.CANCELLED),
    ],
)
def test_when_all_is_undone_the_instance_ends_where_the_undo_leads(ends_as: str, kind: str, status: Status) -> None:
    journal = undoing(FIRST, SECOND, ends_as=ends_as, lease_owner="me")

    decide_undone(journal, SECOND)
    assert (kinds(journal), journal.state.status, journal.state.due_at) == (
        ["step_compensated"],
        Status.COMPENSATING,
        NOON,
    )
    decide_undone(journal, FIRST)

    assert kinds(journal) == ["step_compensated", "step_compensated", kind]
    assert (journal.state.status, journal.state.ends_as, journal.state.due_at) == (status, "", None)
    assert [entry["undo"] for entry in journal.state.compensation_stack] == ["done", "done"]


@pytest.mark.parametrize(
    ("failure", "attempt", "gives_up"),
    [
        (RAISED, 1, False),
        (RAISED, 2, True),
        (Failure(type="FinalError", message="closed", retryable=False), 1, True),
    ],
)
def test_an_undo_is_tried_again_while_its_policy_allows_and_then_given_up(
    failure: Failure, attempt: int, gives_up: bool
) -> None:
    journal = undoing(FIRST, SECOND, lease_owner="me")
    journal.attempt = attempt

    decide_undo_failure(journal, SECOND, failure, POLICY)

    state = journal.state
    assert (state.status, state.lease_owner) == (Status.COMPENSATING, "")
    assert state.compensation_stack[1].get("undo") == ("failed" if gives_up else None)
    assert state.due_at == NOON + timedelta(seconds=0 if gives_up else 10)
    assert kinds(journal) == ["compensation_failed" if gives_up else "compensation_attempt_failed"]
    assert state.error == {"type": failure.type, "message": "closed", "step": "two", "visit": 2, "attempt": attempt}


def test_an_instance_of_which_a_part_could_not_be_undone_is_failed_and_remembers_where_it_was_to_lead() -> None:
    journal = undoing(FIRST, {**SECOND, "undo": "failed"}, ends_as="cancelled", error={"type": "OSError"})

    decide_undone(journal, FIRST)

    assert kinds(journal) == ["step_compensated", "workflow_failed"]
    assert (journal.state.status, journal.state.ends_as) == (Status.FAILED, "cancelled")
    assert journal.events[-1].data == {"error": {"type": "OSError"}}


def test_history_alone_gives_the_state() -> None:
    journal = undoing(FIRST, SECOND)
    start = journal.state
    claim_undo(journal, SECOND, "me", timedelta(seconds=60))
    decide_undo_failure(journal, SECOND, RAISED, POLICY)

    assert reduce(apply, journal.events, start) == journal.state
