"""What a step's outcome does to the instance."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, assert_never

from workflow_engine.domain.decisions.failure import decide_failure
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Await, Complete, Fail, Finish, Goto, Outcome, Retry, Sleep
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import Status
from workflow_engine.exceptions import (
    PostponedError,
    UndeclaredGotoError,
    UnhandledSignalsError,
    VisitLimitError,
)

NOT_WAITING: Mapping[str, Any] = {"awaiting_signals": [], "deadline_at": None, "handling": ""}
SETTLED: Mapping[str, Any] = {"lease_owner": "", "error": None}


def check_outcome(state: State, outcome: Outcome, rules: StepRules) -> None:
    """Refuse an outcome that can't be carried out, while the step's writes can still be rolled back.

    Raises:
        UndeclaredGotoError: a Goto to a step that the workflow has not, or that `goes_to` does not list.
        PostponedError: a Goto to a step that this code has but the instance's snapshot has not.
        UnhandledSignalsError: several names awaited without a handler to tell them apart.
        VisitLimitError: too many steps entered without parking.
    """
    match outcome:
        case Goto(step=target):
            _check_target(state, target, rules)
        case Await(names=names) if len(names) > 1 and not rules.handles_signals:
            raise UnhandledSignalsError(state.current_step, names)
    enters = isinstance(outcome, Goto) or (isinstance(outcome, Complete) and not state.is_last_step)
    if enters and state.visits_since_park >= rules.max_visits_without_parking:
        raise VisitLimitError(rules.max_visits_without_parking, state.current_step)


def decide_outcome(journal: Journal, outcome: Outcome, rules: StepRules) -> None:
    """Carry out a checked outcome whose values have passed the JSON gate."""
    match outcome:
        case Complete(updates=updates, result=result):
            complete(journal, updates, updates if result is None else result, rules)
        case Await():
            _await(journal, outcome, rules)
        case Sleep():
            _sleep(journal, outcome, rules)
        case Goto(step=target, updates=updates):
            index = list(journal.state.step_sequence).index(target)
            _leave(journal, updates, updates, rules, data={"goto": target}, **_entry(journal, index))
        case Finish(result=result, updates=updates):
            _leave(journal, updates, updates, rules)
            _end(journal, result)
        case Retry(reason=reason, after=after):
            decide_failure(journal, Failure(type="Retry", message=reason, stated=True, after=after), rules)
        case Fail(reason=reason):
            decide_failure(journal, Failure(type="Fail", message=reason, stated=True, retryable=False), rules)
        case _:
            assert_never(outcome)


def complete(journal: Journal, updates: Mapping[str, Any] | None, result: Any, rules: StepRules) -> None:
    """The current step is done: on to the next one, or the workflow is completed."""
    if journal.state.is_last_step:
        _leave(journal, updates, result, rules)
        _end(journal, result)
    else:
        _leave(journal, updates, result, rules, **_entry(journal, journal.state.step_index + 1))


def wake(journal: Journal, rules: StepRules) -> None:
    """The sleep is over: its step is done."""
    complete(journal, None, None, rules)


def _leave(
    journal: Journal,
    updates: Mapping[str, Any] | None,
    result: Any,
    rules: StepRules,
    *,
    data: Mapping[str, Any] | None = None,
    **changes: Any,
) -> None:
    state = journal.state
    undo = {"visit": state.visit, "step": state.current_step, "state": "completed", "result": result}
    # What was merged into the context is told by the event anyway.
    told = {**(data or {}), **({} if result is updates else {"result": result})}
    journal.add(
        EventKind.STEP_COMPLETED,
        updates=updates,
        undo=undo if rules.compensates else None,
        data=told,
        **{**NOT_WAITING, **SETTLED, **changes},
    )


def _entry(journal: Journal, index: int) -> dict[str, Any]:
    """What entering the step at `index` changes."""
    state = journal.state
    return {
        "status": Status.IN_PROGRESS,
        "step_index": index,
        "current_step": state.step_sequence[index],
        "visit": state.visit + 1,
        "visits_since_park": state.visits_since_park + 1,
        "attempts": 0,
        "due_at": journal.now,
    }


def _end(journal: Journal, result: Any) -> None:
    journal.add(
        EventKind.WORKFLOW_COMPLETED,
        status=Status.COMPLETED,
        result=result,
        due_at=None,
        cancel_requested=None,
        paused=False,
    )


def _await(journal: Journal, outcome: Await, rules: StepRules) -> None:
    timeout = outcome.timeout
    deadline = journal.now + timeout if isinstance(timeout, timedelta) else timeout
    _park(
        journal,
        EventKind.WORKFLOW_AWAITING,
        outcome.updates,
        rules,
        status=Status.AWAITING,
        awaiting_signals=list(outcome.names),
        deadline_at=deadline,
        due_at=deadline,
    )


def _sleep(journal: Journal, outcome: Sleep, rules: StepRules) -> None:
    until = outcome.until_or_for
    wakes_at = journal.now + until if isinstance(until, timedelta) else until
    _park(journal, EventKind.WORKFLOW_SLEPT, outcome.updates, rules, status=Status.SLEEPING, due_at=wakes_at)


def _park(
    journal: Journal, kind: EventKind, updates: Mapping[str, Any] | None, rules: StepRules, **changes: Any
) -> None:
    """What a parked step has done so far is committed, so it is offered for undo even if it never completes."""
    state = journal.state
    undo = {"visit": state.visit, "step": state.current_step, "state": "parked"}
    fresh = {"attempts": 0, "visits_since_park": 0}
    journal.add(
        kind,
        updates=updates,
        undo=undo if rules.compensates else None,
        **{**NOT_WAITING, **SETTLED, **fresh, **changes},
    )


def _check_target(state: State, target: str, rules: StepRules) -> None:
    allowed = rules.known_steps if rules.goes_to is None else rules.goes_to
    if target not in allowed:
        raise UndeclaredGotoError(state.current_step, target, allowed)
    if target not in state.step_sequence:
        raise PostponedError(state.current_step, target)
