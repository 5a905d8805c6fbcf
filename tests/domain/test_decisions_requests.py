from __future__ import annotations

from typing import Any

import pytest

from tests.domain.decided import NOON, kinds, on_step, waiting
from workflow_engine.domain.decisions import requests
from workflow_engine.domain.statuses import TERMINAL, Status

DONE = {"visit": 1, "step": "one", "state": "completed", "result": 1}
ENDED = "It has ended and can't be changed any more."
ERROR = {"type": "ValueError", "message": "no", "step": "two", "visit": 5, "attempt": 3}


@pytest.mark.parametrize(
    ("request_", "state", "reason"),
    [
        ("signal", {"status": Status.FAILED}, "Retry it first, then send the signal."),
        ("signal", {"status": Status.COMPLETED}, ENDED),
        ("signal", {"status": Status.COMPENSATING, "ends_as": "compensated"}, None),
        ("signal", {"paused": True}, None),
        ("cancel", {"status": Status.FAILED}, ENDED),
        ("cancel", {"status": Status.COMPENSATING, "ends_as": "compensated"}, "Its steps are already being undone."),
        ("cancel", {"cancel_requested": {"reason": ""}}, "A cancellation was already requested."),
        ("cancel", {"paused": True}, None),
        ("pause", {"paused": True}, "It is paused already."),
        ("pause", {}, None),
        ("resume", {}, "It is not paused."),
        ("resume", {"paused": True}, None),
        ("retry", {}, "Only a failed instance can be retried."),
        ("retry", {"status": Status.CANCELLED}, "Only a failed instance can be retried."),
        ("retry", {"status": Status.FAILED}, None),
    ],
)
def test_why_a_request_makes_no_sense(request_: str, state: dict[str, Any], reason: str | None) -> None:
    assert requests.why_not(on_step(**state).state, request_) == reason


@pytest.mark.parametrize("status", sorted(TERMINAL))
@pytest.mark.parametrize("request_", ["cancel", "pause", "resume"])
def test_what_has_ended_takes_no_request(status: Status, request_: str) -> None:
    assert requests.why_not(on_step(status=status, paused=True).state, request_) == ENDED


def test_a_denied_request_changes_nothing() -> None:
    journal = on_step()
    before = journal.state

    requests.deny(journal, "pause", "It is paused already.")

    assert journal.state == before
    assert journal.events[0].data == {"request": "pause", "reason": "It is paused already."}


@pytest.mark.parametrize(
    ("compensate", "stack", "status", "kind"),
    [
        (True, [], Status.CANCELLED, "workflow_cancelled"),
        (True, [DONE], Status.COMPENSATING, "workflow_compensating"),
        (False, [DONE], Status.CANCELLED, "workflow_cancelled"),
        (True, [{**DONE, "state": "known_failure"}], Status.CANCELLED, "workflow_cancelled"),
    ],
)
def test_a_cancel_undoes_what_there_is_to_undo(
    compensate: bool, stack: list[dict[str, Any]], status: Status, kind: str
) -> None:
    journal = waiting(compensation_stack=stack, paused=True, deadline_at=NOON, handling="timeout")

    requests.decide_cancel(journal, compensate=compensate, reason="ill")

    state = journal.state
    assert (kinds(journal), state.status, journal.events[0].data["reason"]) == ([kind], status, "ill")
    assert (state.paused, state.awaiting_signals, state.deadline_at, state.handling) == (False, [], None, "")
    assert state.ends_as == ("cancelled" if status == Status.COMPENSATING else "")


def test_a_cancel_beside_a_lease_is_written_down_and_carried_out_when_the_lease_is_over() -> None:
    journal = on_step(lease_owner="me", paused=True, compensation_stack=[DONE])
    journal.actor = "zoë"

    requests.decide_cancel(journal, compensate=True, reason="ill")

    assert kinds(journal) == ["cancel_requested"]
    assert journal.state.cancel_requested == {"compensate": True, "reason": "ill", "actor": "zoë"}
    # Nothing would move it if its worker were dead.
    assert journal.state.paused is False

    journal.actor = ""
    journal.add(journal.events[0].kind, lease_owner="")
    requests.carry_out_requested_cancel(journal)

    assert journal.state.status == Status.COMPENSATING
    assert not journal.state.cancel_requested
    assert (journal.events[-1].actor, journal.events[-1].data["reason"]) == ("zoë", "ill")


@pytest.mark.parametrize("status", [*sorted(TERMINAL), Status.COMPENSATING])
def test_a_cancel_that_was_requested_comes_too_late_for_what_has_ended(status: Status) -> None:
    journal = on_step(status=status, cancel_requested={"compensate": True, "reason": "", "actor": ""})

    requests.carry_out_requested_cancel(journal)

    assert journal.events == []


def test_a_pause_and_a_resume_change_that_alone() -> None:
    journal = waiting()
    before = journal.state

    requests.decide_pause(journal, "lunch")
    assert (journal.state.paused, journal.state.due_at) == (True, before.due_at)
    requests.decide_resume(journal, "")

    assert journal.state == before
    assert [dict(event.data) for event in journal.events] == [{"reason": "lunch"}, {}]


@pytest.mark.parametrize(("handling", "status"), [("", Status.IN_PROGRESS), ("signal:7", Status.AWAITING)])
def test_a_retry_arms_the_failed_step_or_handler_again_in_the_same_visit(handling: str, status: Status) -> None:
    journal = on_step("two", status=Status.FAILED, attempts=3, error=ERROR, handling=handling, finished_at=NOON)

    requests.decide_retry(journal, "mended")

    state = journal.state
    assert (state.status, state.attempts, state.error, state.due_at) == (status, 0, None, NOON)
    assert (state.visit, state.handling, state.finished_at, state.visits_since_park) == (5, handling, None, 0)


def test_a_retry_offers_undos_that_were_given_up_once_more_and_none_that_are_done() -> None:
    stack = [
        {**DONE, "undo": "failed", "undo_attempts": 2},
        {**DONE, "visit": 2, "undo": "done", "undo_attempts": 1},
    ]
    journal = on_step(status=Status.FAILED, error=ERROR, ends_as="cancelled", compensation_stack=stack)

    requests.decide_retry(journal, "")

    assert (journal.state.status, journal.state.ends_as, journal.state.error) == (
        Status.COMPENSATING,
        "cancelled",
        None,
    )
    assert journal.state.compensation_stack == [DONE, stack[1]]
