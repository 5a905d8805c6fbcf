from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.domain.decided import NOON, decided, kinds, on_step
from workflow_engine.domain.decisions.outcome import check_outcome, decide_outcome, wake
from workflow_engine.domain.decisions.rules import StepRules
from workflow_engine.domain.outcomes import Await, Complete, Fail, Finish, Goto, Outcome, Retry, Sleep
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status
from workflow_engine.exceptions import (
    PostponedError,
    UndeclaredGotoError,
    UnhandledSignalsError,
    VisitLimitError,
    WorkflowEngineError,
)

RULES = StepRules(known_steps=("one", "two", "three"), retry=RetryPolicy(jitter=False))
UNDOABLE = StepRules(known_steps=("one", "two", "three"), compensates=True)
HOUR = timedelta(hours=1)
ENTERED = {"status": Status.IN_PROGRESS, "visit": 6, "visits_since_park": 6}
PARKED = {"visits_since_park": 0}


@pytest.mark.parametrize(
    ("step", "outcome", "expected"),
    [
        (
            "one",
            Complete({"a": 1}),
            [("step_completed", {"updates": {"a": 1}, "step_index": 1, "current_step": "two", **ENTERED})],
        ),
        (
            "three",
            Complete({"a": 1}, result="r"),
            [
                ("step_completed", {"updates": {"a": 1}}),
                ("workflow_completed", {"status": Status.COMPLETED, "result": "r", "due_at": None}),
            ],
        ),
        (
            "three",
            Goto("one", {"a": 1}),
            [("step_completed", {"updates": {"a": 1}, "step_index": 0, "current_step": "one", **ENTERED})],
        ),
        ("one", Goto("one"), [("step_completed", ENTERED)]),
        (
            "one",
            Finish({"r": 1}, {"a": 1}),
            [
                ("step_completed", {"updates": {"a": 1}}),
                ("workflow_completed", {"status": Status.COMPLETED, "result": {"r": 1}, "due_at": None}),
            ],
        ),
        (
            "one",
            Await("go", timeout=HOUR, updates={"a": 1}),
            [
                (
                    "workflow_awaiting",
                    {
                        "updates": {"a": 1},
                        "status": Status.AWAITING,
                        "awaiting_signals": ["go"],
                        "due_at": NOON + HOUR,
                        "deadline_at": NOON + HOUR,
                        **PARKED,
                    },
                )
            ],
        ),
        (
            "one",
            Await("go"),
            [("workflow_awaiting", {"status": Status.AWAITING, "awaiting_signals": ["go"], "due_at": None, **PARKED})],
        ),
        (
            "one",
            Sleep(NOON + HOUR),
            [("workflow_slept", {"status": Status.SLEEPING, "due_at": NOON + HOUR, **PARKED})],
        ),
        ("one", Sleep(HOUR), [("workflow_slept", {"status": Status.SLEEPING, "due_at": NOON + HOUR, **PARKED})]),
    ],
)
def test_an_outcome_becomes_events_and_changes(step: str, outcome: Outcome, expected: list[Any]) -> None:
    journal = on_step(step)

    decide_outcome(journal, outcome, RULES)

    assert decided(journal) == expected


@pytest.mark.parametrize("outcome", [Complete(), Goto("two"), Await("go"), Sleep(HOUR), Finish()])
def test_whatever_succeeds_ends_the_lease_the_attempts_and_the_error(outcome: Outcome) -> None:
    error = {"type": "ValueError", "message": "", "step": "one", "visit": 5, "attempt": 1}
    journal = on_step(attempts=2, error=error, lease_owner="me", handling="timeout")

    decide_outcome(journal, outcome, RULES)

    state = journal.state
    assert (state.lease_owner, state.error, state.handling) == ("", None, "")
    assert state.attempts == (2 if isinstance(outcome, Finish) else 0)


@pytest.mark.parametrize(
    ("outcome", "entry"),
    [
        (Complete({"a": 1}), {"visit": 5, "step": "one", "state": "completed", "result": {"a": 1}}),
        (Complete({"a": 1}, result=0), {"visit": 5, "step": "one", "state": "completed", "result": 0}),
        (Goto("two", {"a": 1}), {"visit": 5, "step": "one", "state": "completed", "result": {"a": 1}}),
        (Await("go"), {"visit": 5, "step": "one", "state": "parked"}),
        (Sleep(HOUR), {"visit": 5, "step": "one", "state": "parked"}),
    ],
)
def test_a_step_that_can_be_undone_is_put_on_the_stack(outcome: Outcome, entry: dict[str, Any]) -> None:
    journal = on_step()

    decide_outcome(journal, outcome, UNDOABLE)

    assert journal.state.compensation_stack == [entry]


def test_there_is_one_entry_per_visit_on_the_stack() -> None:
    journal = on_step()

    decide_outcome(journal, Await("go"), UNDOABLE)
    decide_outcome(journal, Complete(result=1), UNDOABLE)

    assert journal.state.compensation_stack == [{"visit": 5, "step": "one", "state": "completed", "result": 1}]


@pytest.mark.parametrize(
    ("outcome", "status", "final"),
    [(Retry("busy"), Status.IN_PROGRESS, False), (Fail("no"), Status.FAILED, True)],
)
def test_a_failure_that_is_returned_is_decided_like_one_that_is_raised(
    outcome: Outcome, status: Status, final: bool
) -> None:
    journal = on_step()

    decide_outcome(journal, outcome, RULES)

    assert (journal.state.status, journal.events[0].data["final"]) == (status, final)
    assert kinds(journal) == ["step_failed", "workflow_failed"][: 1 + final]


def test_a_retry_may_name_its_delay() -> None:
    journal = on_step()

    decide_outcome(journal, Retry("busy", after=HOUR), RULES)

    assert journal.state.due_at == NOON + HOUR


def test_a_sleep_that_is_over_completes_its_step() -> None:
    journal = on_step(status=Status.SLEEPING)

    wake(journal, RULES)

    assert (kinds(journal), journal.state.current_step, journal.state.status) == (
        ["step_completed"],
        "two",
        Status.IN_PROGRESS,
    )


@pytest.mark.parametrize(
    ("outcome", "rules", "error"),
    [
        (Goto("nowhere"), RULES, UndeclaredGotoError),
        (Goto("three"), StepRules(known_steps=("one", "two", "three"), goes_to=("two",)), UndeclaredGotoError),
        (Goto("four"), StepRules(known_steps=("one", "two", "three", "four")), PostponedError),
        (Goto("four"), StepRules(known_steps=("one",), goes_to=("four",)), PostponedError),
        (Await("yes", "no"), RULES, UnhandledSignalsError),
        (Complete(), StepRules(max_visits_without_parking=5), VisitLimitError),
        (Goto("two"), StepRules(known_steps=("two",), max_visits_without_parking=5), VisitLimitError),
    ],
)
def test_an_outcome_that_can_not_be_carried_out_is_refused(
    outcome: Outcome, rules: StepRules, error: type[WorkflowEngineError]
) -> None:
    with pytest.raises(error):
        check_outcome(on_step().state, outcome, rules)


@pytest.mark.parametrize(
    ("step", "outcome", "rules"),
    [
        ("one", Goto("two"), StepRules(known_steps=("one", "two"), goes_to=("two",))),
        ("one", Await("yes", "no"), StepRules(handles_signals=True)),
        ("one", Await("yes", "yes"), RULES),
        ("three", Complete(), StepRules(max_visits_without_parking=5)),
        ("one", Finish(), StepRules(max_visits_without_parking=5)),
        ("one", Sleep(HOUR), StepRules(max_visits_without_parking=5)),
        ("one", Complete(), StepRules(max_visits_without_parking=6)),
    ],
)
def test_an_outcome_that_can_be_carried_out_passes(step: str, outcome: Outcome, rules: StepRules) -> None:
    check_outcome(on_step(step).state, outcome, rules)
