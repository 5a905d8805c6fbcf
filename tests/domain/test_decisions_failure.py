from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.domain.decided import NOON, kinds, on_step
from workflow_engine.domain.decisions.failure import decide_failure, next_undo
from workflow_engine.domain.decisions.leases import claim_attempt, decide_lost_attempt, decide_poison
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status

RULES = StepRules(retry=RetryPolicy(max_attempts=3, initial_delay=10, jitter=False))
UNDOABLE = StepRules(retry=RULES.retry, compensates=True)
RAISED = Failure(type="ValueError", message="no")
STATED = Failure(type="Retry", message="no", stated=True)
FINAL = Failure(type="Fail", message="no", stated=True, retryable=False)


@pytest.mark.parametrize(
    ("failure", "attempt", "handling", "status", "seconds"),
    [
        (RAISED, 1, "", Status.IN_PROGRESS, 10),
        (RAISED, 2, "", Status.IN_PROGRESS, 20),
        (RAISED, 3, "", Status.FAILED, None),
        (RAISED, 2, "signal:7", Status.AWAITING, 20),
        (RAISED, 3, "timeout", Status.FAILED, None),
        (FINAL, 1, "", Status.FAILED, None),
        (Failure(type="Retry", message="no", after=timedelta(seconds=1)), 2, "", Status.IN_PROGRESS, 1),
    ],
)
def test_a_failure_is_tried_again_while_the_policy_allows(
    failure: Failure, attempt: int, handling: str, status: Status, seconds: int | None
) -> None:
    start = Status.AWAITING if handling else Status.IN_PROGRESS
    journal = on_step(attempt=attempt, status=start, attempts=attempt - 1)

    decide_failure(journal, failure, RULES, handling=handling)

    state = journal.state
    assert (state.status, state.attempts, state.handling) == (status, attempt, handling)
    assert state.due_at == (None if seconds is None else NOON + timedelta(seconds=seconds))
    assert state.error == {"type": failure.type, "message": "no", "step": "one", "visit": 5, "attempt": attempt}
    assert journal.events[0].data["final"] is (status == Status.FAILED)


def test_a_backoff_that_raises_or_talks_nonsense_gives_way_to_the_formula() -> None:
    for backoff in (lambda attempt: 1 // 0, lambda attempt: -5, lambda attempt: "soon"):
        policy = RetryPolicy(initial_delay=10, jitter=False, backoff=backoff)  # type: ignore[arg-type]
        journal = on_step()
        decide_failure(journal, RAISED, StepRules(retry=policy))
        assert journal.state.due_at == NOON + timedelta(seconds=10)


@pytest.mark.parametrize(
    ("attempts", "entry"),
    [
        ([STATED], {"state": "known_failure"}),
        ([STATED, STATED], {"state": "known_failure"}),
        ([RAISED], {"state": "unknown", "lost": True}),
        ([RAISED, STATED], {"state": "unknown", "lost": True}),
        ([STATED, RAISED], {"state": "unknown", "lost": True}),
        (["lost", STATED], {"state": "unknown", "lost": True}),
        ([STATED, "lost"], {"state": "unknown", "lost": True}),
    ],
)
def test_a_visit_is_offered_for_undo_unless_all_its_attempts_are_known_to_have_done_nothing(
    attempts: list[Any], entry: dict[str, Any]
) -> None:
    journal = on_step()
    for failure in attempts:
        claim_attempt(journal, "me", timedelta(seconds=60), UNDOABLE)
        if failure == "lost":
            decide_lost_attempt(journal, UNDOABLE)
        else:
            decide_failure(journal, failure, UNDOABLE)

    assert journal.state.compensation_stack == [{"visit": 5, "step": "one", **entry}]
    assert (next_undo(journal.state) is None) == (entry["state"] == "known_failure")


def test_what_was_done_is_undone_when_no_attempt_is_left() -> None:
    done = {"visit": 1, "step": "one", "state": "completed", "result": None}
    journal = on_step("two", attempt=3, compensation_stack=[done], paused=False)

    decide_failure(journal, RAISED, RULES)

    assert kinds(journal) == ["step_failed", "workflow_compensating"]
    assert (journal.state.status, journal.state.ends_as, journal.state.due_at) == (
        Status.COMPENSATING,
        Status.COMPENSATED,
        NOON,
    )


@pytest.mark.parametrize(
    ("stack", "undone"),
    [
        ([], None),
        ([{"visit": 1, "state": "completed"}, {"visit": 2, "state": "parked"}], 2),
        ([{"visit": 1, "state": "completed"}, {"visit": 2, "state": "known_failure"}], 1),
        ([{"visit": 1, "state": "unknown"}, {"visit": 2, "state": "completed", "undo": "done"}], 1),
        ([{"visit": 1, "state": "completed"}, {"visit": 2, "state": "completed", "undo": "failed"}], 1),
        ([{"visit": 1, "state": "completed", "undo": "done"}], None),
    ],
)
def test_the_latest_entry_that_is_neither_undone_nor_given_up_comes_next(
    stack: list[dict[str, Any]], undone: int | None
) -> None:
    entry = next_undo(on_step(compensation_stack=stack).state)

    assert (entry and entry["visit"]) == undone


def test_a_claim_counts_the_attempt_and_raises_the_token() -> None:
    journal = on_step(attempts=1, lease_token=4)

    claim_attempt(journal, "me", timedelta(seconds=60), UNDOABLE)

    state = journal.state
    assert (state.attempts, state.lease_token, state.lease_owner, state.due_at) == (
        2,
        5,
        "me",
        NOON + timedelta(seconds=60),
    )
    assert state.compensation_stack == [{"visit": 5, "step": "one", "state": "started"}]
    assert journal.events[0].attempt == 2


@pytest.mark.parametrize(("attempts", "status"), [(1, Status.IN_PROGRESS), (3, Status.FAILED)])
def test_a_lost_attempt_is_tried_again_while_the_policy_allows(attempts: int, status: Status) -> None:
    journal = on_step(attempts=attempts, lease_owner="gone", lease_token=1)

    decide_lost_attempt(journal, RULES)

    assert (journal.state.status, journal.state.lease_owner, journal.state.attempts) == (status, "", attempts)
    assert journal.state.error is not None
    assert journal.state.error["type"] == "LeaseExpired"


def test_poison_is_final_and_undoes_what_was_done() -> None:
    done = {"visit": 1, "step": "one", "state": "completed", "result": None}
    for stack, status in (([], Status.FAILED), ([done], Status.COMPENSATING)):
        journal = on_step("two", compensation_stack=stack)
        decide_poison(journal, 5)
        assert journal.state.status == status
        assert journal.state.error is not None
        assert (journal.state.error["type"], journal.state.error["message"]) == (
            "Poison",
            "5 processes in a row died while they worked on it",
        )


def test_an_undo_that_kills_processes_is_given_up_and_the_others_go_on() -> None:
    stack = [{"visit": 1, "step": "one", "state": "completed"}, {"visit": 2, "step": "two", "state": "completed"}]
    journal = on_step("three", status=Status.COMPENSATING, ends_as="compensated", compensation_stack=stack)

    decide_poison(journal, 5)

    assert kinds(journal) == ["compensation_failed"]
    assert next_undo(journal.state) == stack[0]
