from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.inspection.flows import PAID, REFUSED, Trip
from workflow_engine import clock, engine
from workflow_engine.domain.registry import registry
from workflow_engine.inspection.standing import summary
from workflow_engine.inspection.times import relative
from workflow_engine.inspection.why import Why, explain
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def after(row: WorkflowInstance) -> WorkflowInstance:
    engine.drive(row)
    row.refresh_from_db()
    return row


def started(name: str, **context: Any) -> WorkflowInstance:
    return after(engine.start(name, context=context))


def why(row: WorkflowInstance) -> Why:
    return explain(row, clock.now("default"))


def until(answer: Why) -> str:
    assert answer.until is not None
    return relative(answer.until, clock.now("default"))


def test_an_instance_that_nobody_took_yet_waits_for_a_worker() -> None:
    answer = why(engine.start("parcel"))
    assert (answer.headline, answer.waits_for, answer.until) == ("pending at pack", "a worker to take it", None)
    assert answer.remaining == ("await_payment", "ship", "travel", "arrive", "give_up")
    assert answer.verbs == ("signal", "advance", "pause", "cancel")


def test_an_instance_that_somebody_has_in_hand_waits_for_that() -> None:
    row = engine.start("parcel")
    WorkflowInstance.objects.update(poll_at=clock.now("default") + timedelta(seconds=30), suspect=True, recoveries=2)
    row.refresh_from_db()
    answer = why(row)
    assert answer.waits_for == "the worker that has it in hand"
    assert answer.notes == (
        "The process that had it in hand has not reported back.",
        "2 processes in a row died while they worked on it.",
    )


def test_a_wait_names_the_signals_the_deadline_and_who_decides() -> None:
    answer = why(started("parcel"))
    assert answer.headline == "awaiting paid or refused at await_payment"
    assert (answer.waits_for, until(answer), answer.signals) == ("paid or refused", "in 2 d", (PAID, REFUSED))
    assert answer.notes == ("When it comes, answered decides.", "If it does not come in time, too_late decides.")
    assert answer.remaining == ("ship", "travel", "arrive", "give_up")
    assert answer.verbs == ("signal", "pause", "cancel")


def test_a_wait_without_handlers_or_deadline_says_what_follows() -> None:
    answer = why(started("leave"))
    assert (answer.waits_for, answer.until) == ("approved", None)
    assert answer.notes == ("Then it is completed.", "It waits for as long as it takes.")


def test_a_wait_that_is_overdue_waits_for_a_worker() -> None:
    row = started("parcel")
    clock.shift(timedelta(days=3))
    answer = why(row)
    assert (answer.waits_for, answer.until) == ("a worker to take it", None)
    assert answer.verbs == ("signal", "advance", "pause", "cancel")


def test_a_failed_attempt_tells_the_error_and_when_the_next_one_is() -> None:
    row = started("parcel", carrier="busy")
    engine.signal(row, PAID)
    answer = why(after(row))
    assert answer.wrong == "RuntimeError: the carrier is busy (ship, attempt 1 of 2)"
    assert (answer.headline, answer.waits_for, until(answer)) == ("in progress at ship", "the next attempt", "in 3 h")


def test_a_failure_tells_what_a_retry_would_do() -> None:
    row = started("parcel")
    engine.signal(row, REFUSED)
    answer = why(after(row))
    assert answer.headline == "failed at give_up"
    assert answer.wrong == "Fail: nobody paid (give_up, attempt 1)"
    assert answer.notes == ("A retry runs give_up again, with fresh attempts.",)
    assert (answer.remaining, answer.waits_for, answer.verbs) == ((), "", ("retry",))


def test_a_timeout_that_nobody_handles_is_no_attempt() -> None:
    row = started("leave")
    WorkflowInstance.objects.update(
        error={"type": "Timeout", "message": "approved did not arrive in time", "step": "approve", "attempt": 0}
    )
    row.refresh_from_db()
    assert why(row).wrong == "Timeout: approved did not arrive in time (approve)"


def test_a_sleep_tells_when_it_ends_and_what_comes_then() -> None:
    row = started("parcel")
    engine.signal(row, PAID)
    answer = why(after(row))
    assert (answer.headline, answer.waits_for, until(answer)) == (
        "sleeping at travel",
        "the end of its sleep",
        "in 5 d",
    )
    assert answer.notes == ("Then comes arrive.",)


def test_a_paused_instance_waits_for_somebody() -> None:
    row = started("parcel")
    engine.pause(row)
    answer = why(after(row))
    assert answer.headline == "awaiting paid or refused at await_payment, paused"
    assert (answer.waits_for, answer.until) == ("somebody to resume it", None)
    assert answer.verbs == ("signal", "resume", "cancel")


def test_an_undo_tells_what_is_left_and_where_it_leads() -> None:
    row = started("trip")
    engine.cancel(row)
    engine.advance(row)
    row.refresh_from_db()
    answer = why(row)
    assert answer.headline == "compensating, next flight"
    assert answer.notes == ("Still to be undone: flight.", "Then it ends as cancelled.")
    assert (answer.remaining, answer.verbs) == ((), ("signal", "advance", "pause"))


def test_an_undo_that_failed_says_so() -> None:
    row = started("trip", airline="gone")
    engine.cancel(row)
    for _ in range(4):
        after(row)
        clock.shift(timedelta(minutes=10))
    answer = why(row)
    assert answer.headline == "failed at hotel"
    assert answer.wrong == "LookupError: the airline is gone (flight, attempt 3)"
    assert answer.notes == ("Could not be undone: flight. A retry tries that again.",)


def test_an_instance_whose_code_is_not_here_says_so() -> None:
    row = started("trip")
    with registry.isolated():
        del registry._classes["trip", 1]
        assert why(row).notes == ("No code here can run it: trip version 1 is not registered.",)
    assert why(row).notes == ("Then it is completed.", "It waits for as long as it takes.")
    assert Trip.name == "trip"


def test_since_is_when_it_came_to_its_step() -> None:
    row = engine.start("parcel")
    assert why(row).since == row.created_at
    clock.shift(timedelta(hours=1))
    engine.advance(row)
    row.refresh_from_db()
    arrived = row.events.get(kind="step_completed").created_at
    assert why(row).since == arrived
    clock.shift(timedelta(hours=1))
    assert why(after(row)).since == row.status_changed_at > arrived


def test_the_summary_is_one_line_with_the_id() -> None:
    row = started("parcel")
    now = clock.now("default")
    assert summary(row, now) == f"parcel {row.pk}: awaiting paid or refused at await_payment, in 2 d"
    engine.cancel(row)
    assert summary(after(row), now) == f"parcel {row.pk}: cancelled"
