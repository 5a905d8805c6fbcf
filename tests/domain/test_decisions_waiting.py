from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.domain.decided import GO, NOON, kinds, waiting
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.decisions.waiting import (
    decide_signal,
    decide_signal_failure,
    decide_timeout,
    decide_timeout_failure,
    decide_unhandled_timeout,
    default_signal_outcome,
)
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Await, Complete, Fail, Finish, Goto, Outcome, Retry, Sleep
from workflow_engine.domain.received import Signal
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status

RULES = StepRules(
    known_steps=("one", "two", "three"), retry=RetryPolicy(max_attempts=2, initial_delay=10, jitter=False)
)
RAISED = Failure(type="ValueError", message="no")


@pytest.mark.parametrize(
    ("outcome", "then", "status"),
    [
        (Complete(), ["step_completed"], Status.IN_PROGRESS),
        (Goto("three"), ["step_completed"], Status.IN_PROGRESS),
        (Finish(), ["step_completed", "workflow_completed"], Status.COMPLETED),
        (Await("go"), ["workflow_awaiting"], Status.AWAITING),
        (Sleep(5), ["workflow_slept"], Status.SLEEPING),
        (Fail("no"), ["step_failed", "workflow_failed"], Status.FAILED),
    ],
)
def test_an_answer_ends_the_wait_and_consumes_the_signal(outcome: Outcome, then: list[str], status: Status) -> None:
    journal = waiting(deadline_at=NOON)
    assert decide_signal(journal, GO, outcome, RULES)
    timed_out = waiting(deadline_at=NOON)
    decide_timeout(timed_out, outcome, RULES)

    assert kinds(journal) == ["signal_received", *then]
    assert kinds(timed_out) == ["step_timed_out", *then]
    assert journal.state.status == timed_out.state.status == status
    assert journal.state.awaiting_signals == (["go"] if status == Status.AWAITING else [])
    assert (journal.state.deadline_at, journal.state.handling) == (None, "")
    assert journal.events[0].data == {"signal": "go", "signal_id": 7}
    assert timed_out.events[0].data == {"awaited": ["go"]}


@pytest.mark.parametrize(
    "fails",
    [
        lambda journal: decide_signal(journal, GO, Retry("no"), RULES),
        lambda journal: decide_signal_failure(journal, GO, RAISED, RULES),
        lambda journal: decide_timeout(journal, Retry("no"), RULES),
        lambda journal: decide_timeout_failure(journal, RAISED, RULES),
    ],
)
def test_a_handler_that_is_tried_again_leaves_the_wait_and_the_signal_as_they_are(
    fails: Callable[[Journal], Any],
) -> None:
    journal = waiting()

    consumed = fails(journal)

    assert not consumed
    assert kinds(journal) == ["step_failed"]
    assert (journal.state.status, journal.state.awaiting_signals, journal.state.attempts) == (
        Status.AWAITING,
        ["go"],
        1,
    )
    assert journal.state.handling in {"signal:7", "timeout"}


@pytest.mark.parametrize(
    ("fails", "first", "handling"),
    [
        (lambda journal: decide_signal(journal, GO, Retry("no"), RULES), "signal_received", "signal:7"),
        (lambda journal: decide_signal_failure(journal, GO, RAISED, RULES), "signal_received", "signal:7"),
        (lambda journal: decide_timeout(journal, Retry("no"), RULES), "step_timed_out", "timeout"),
        (lambda journal: decide_timeout_failure(journal, RAISED, RULES), "step_timed_out", "timeout"),
    ],
)
def test_the_last_failure_of_a_handler_ends_the_wait_and_remembers_the_handler(
    fails: Callable[[Journal], Any], first: str, handling: str
) -> None:
    journal = waiting(attempts=1, attempt=2)

    consumed = fails(journal)

    assert consumed in {True, None}
    assert kinds(journal) == [first, "step_failed", "workflow_failed"]
    assert (journal.state.handling, journal.state.awaiting_signals) == (handling, [])


def test_a_failure_that_the_handler_decides_on_leads_back_to_the_step() -> None:
    for decide in (lambda journal: decide_signal(journal, GO, Fail("no"), RULES), decide_fail_by_timeout):
        journal = waiting()
        decide(journal)
        assert (journal.state.status, journal.state.handling) == (Status.FAILED, "")


def decide_fail_by_timeout(journal: Journal) -> None:
    decide_timeout(journal, Fail("no"), RULES)


def test_a_timeout_that_nobody_handles_is_final_whatever_the_policy_says() -> None:
    journal = waiting("yes", "no", attempt=0)

    decide_unhandled_timeout(journal, RULES)

    assert kinds(journal) == ["step_timed_out", "step_failed", "workflow_failed"]
    assert journal.state.error == {
        "type": "Timeout",
        "message": "yes, no did not arrive in time",
        "step": "one",
        "visit": 5,
        "attempt": 0,
    }


@pytest.mark.parametrize(
    ("data", "updates"),
    [({"a": 1}, {"a": 1}), (None, None), (5, {"go": 5}), ([], {"go": []}), ("", {"go": ""}), ({}, {})],
)
def test_without_a_handler_a_signals_data_is_merged(data: Any, updates: Any) -> None:
    signal = Signal(id=1, name="go", data=data, actor="", received_at=NOON)

    assert default_signal_outcome(signal) == Complete(updates)
