from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from workflow_engine import Await, Context, Fail, RetryPolicy, Sleep, Workflow, activity, clock, engine, step
from workflow_engine.inspection.waterfall import SCALE, Bar, waterfall
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def trek(flows: None) -> None:
    class Trek(Workflow):
        name = "trek"

        @activity(retry=RetryPolicy(max_attempts=2, initial_delay=600, max_delay=600, jitter=False))
        def book(self, ctx: Context) -> dict[str, Any]:
            if ctx.attempt == 1:
                raise RuntimeError("busy")
            return {"booked": True}

        @book.compensation
        def cancel_booking(self, ctx: Context, result: Any) -> None:
            pass

        @step
        def meet(self, ctx: Context) -> Await:
            return Await("all_here")

        @step
        def walk(self, ctx: Context) -> Sleep | Fail:
            return Fail("rain") if ctx.get("weather") == "bad" else Sleep(3600)


def later(row: WorkflowInstance, **units: float) -> None:
    clock.shift(timedelta(**units))
    drain()
    row.refresh_from_db()


def bars(row: WorkflowInstance) -> list[Bar]:
    return waterfall(row, list(row.events.order_by("seq")), clock.now("default"))


def told(row: WorkflowInstance) -> list[tuple[str, str, int]]:
    """Step, what, and how many minutes."""
    return [(bar.step, bar.label, round((bar.end - bar.start) / timedelta(minutes=1))) for bar in bars(row)]


def booked() -> WorkflowInstance:
    row = engine.start("trek")
    later(row, minutes=2)
    later(row, minutes=11)
    return row


def test_attempts_backoff_and_waits_one_after_the_other() -> None:
    row = booked()
    later(row, minutes=30)
    engine.signal(row, "all_here")
    later(row, seconds=0)
    later(row, minutes=5)
    assert told(row) == [
        ("book", "until a worker took it", 2),
        ("book", "failed attempt 1", 0),
        ("book", "until the next attempt", 11),
        ("book", "attempt 2", 0),
        ("meet", "waiting for all_here", 30),
        ("walk", "sleeping", 5),
    ]
    assert [bar.goes_on for bar in bars(row)] == [False] * 5 + [True]


def test_undo_and_the_end() -> None:
    row = booked()
    engine.signal(row, "all_here", {"weather": "bad"})
    later(row, minutes=1)
    later(row, minutes=9)
    assert row.status == "compensated"
    assert told(row)[-3:] == [
        ("meet", "waiting for all_here", 1),
        ("walk", "failed attempt 1", 0),
        ("book", "undo 1", 0),
    ]
    assert not any(bar.goes_on for bar in bars(row))


def test_a_pause_interrupts_a_wait() -> None:
    row = booked()
    engine.pause(row)
    later(row, minutes=3)
    engine.resume(row)
    later(row, minutes=4)
    later(row, minutes=5)
    assert told(row)[4:] == [
        ("meet", "waiting for all_here", 3),
        ("meet", "paused", 4),
        ("meet", "waiting for all_here", 5),
    ]


def test_a_failed_one_stood_still_until_somebody_retried_it() -> None:
    row = engine.start("trip", context={"hotel": "silent", "airline": "gone"})
    for _number in range(8):
        later(row, minutes=6)
    assert row.status == "failed"
    assert not bars(row)[-1].goes_on
    later(row, hours=1)
    engine.retry(row)
    later(row, minutes=1)
    assert [bar.label for bar in bars(row)].count("failed, until somebody retried it") == 1


def test_bars_lie_on_one_axis() -> None:
    row = booked()
    later(row, minutes=30)
    drawn = bars(row)
    assert drawn[0].offset == 0
    assert all(0 < bar.width <= SCALE - bar.offset for bar in drawn)
    assert all(later.offset >= bar.offset for bar, later in pairwise(drawn))
    assert drawn[-1].width == pytest.approx(SCALE * 30 / 43, abs=10)


def test_only_the_end_of_a_long_history_is_drawn() -> None:
    row = booked()
    events = list(row.events.order_by("seq"))
    assert [bar.label for bar in waterfall(row, events[-2:], clock.now("default"))] == [
        "attempt 2",
        "waiting for all_here",
    ]
    assert waterfall(row, [], clock.now("default")) == []
