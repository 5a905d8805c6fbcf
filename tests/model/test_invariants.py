"""The checks themselves: each finds what it is there for, in tables that were tampered with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.model import invariants
from tests.model.replay import Tables
from tests.shop.workflows import Approval
from tests.support import TWICE, later, settled
from workflow_engine import Await, Context, Fail, Outcome, Signal, Workflow, activity, clock, engine, step
from workflow_engine.domain.registry import registry

Tamper = Callable[["Told"], None]


@pytest.fixture(autouse=True)
def world(db: None) -> Iterator[None]:
    with registry.isolated():
        yield
    clock.reset_shift()


class Told:
    """A reading of one instance whose rows can be changed."""

    def __init__(self, tables: Tables) -> None:
        self.tables = deepcopy(tables)

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.tables.instances.values()
        return row  # type: ignore[return-value]

    @property
    def history(self) -> list[Any]:
        (history,) = self.tables.events.values()
        return history  # type: ignore[return-value]

    def event(self, kind: str, which: int = 0) -> Any:
        return [event for event in self.history if event["kind"] == kind][which]

    def mail(self, which: int = 0) -> Any:
        return [row for _, row in sorted(self.tables.signals.items())][which]

    def repeat(self, kind: str, **changes: Any) -> None:
        """The event once more at the end of the history."""
        self.add({**deepcopy(self.event(kind)), **changes})

    def add(self, event: Any) -> None:
        self.history.append({**event, "seq": len(self.history) + 1})
        self.row["last_seq"] = len(self.history)

    def found(self, number: int) -> list[str]:
        return list(invariants.INVARIANTS[number](replace(self.tables), None))


def undone() -> Tables:
    """An instance that waited twice, took two of three signals, failed in an activity, and was undone."""

    class Eventful(Workflow):
        name = "eventful"

        @activity(retry=TWICE)
        def book(self, ctx: Context) -> dict[str, Any]:
            if ctx.attempt == 1:
                raise ValueError("no answer")
            return {"booked": True}

        @book.compensation
        def cancel(self, ctx: Context, result: Any) -> None: ...

        @step
        def ask(self, ctx: Context) -> Outcome:
            return Await("go", timeout=60)

        @ask.on_signal
        def asked(self, ctx: Context, signal: Signal) -> Outcome | None:
            return Await("go", timeout=60) if signal.data == 0 else None

        @ask.compensation
        def unask(self, ctx: Context, result: Any) -> None: ...

        @step
        def fail(self, ctx: Context) -> Outcome:
            return Fail("no")

    instance = engine.start(Eventful, idempotency_key="k")
    for number in range(3):
        engine.signal(instance, "go", number)
    settled(instance)
    later(instance, seconds=11)
    return invariants.read(limits={"book": 2, "ask": 3, "fail": 3})


def test_a_sound_history_breaks_no_invariant() -> None:
    tables = undone()

    assert [row["status"] for row in tables.instances.values()] == ["compensated"]
    invariants.assert_hold(tables, tables)


def drop_event(told: Told) -> None:
    del told.history[3]


def illegal_move(told: Told) -> None:
    told.event("workflow_awaiting")["data"]["set"]["status"] = "compensated"


def other_column(told: Told) -> None:
    told.row["attempts"] += 1


def other_type(told: Told) -> None:
    told.row["context"]["booked"] = 1


def received_twice(told: Told) -> None:
    told.repeat("signal_received")


def consumed_without_event(told: Told) -> None:
    told.mail(2)["state"] = "consumed"


def newer_before_older(told: Told) -> None:
    first, second = (told.event("signal_received", which)["data"] for which in (0, 1))
    first["signal_id"], second["signal_id"] = second["signal_id"], first["signal_id"]


def kept_after_the_end(told: Told) -> None:
    told.mail(2)["state"] = "buffered"


def discarded_without_reason(told: Told) -> None:
    told.mail(2)["reason"] = ""


def timeout_beside_signal(told: Told) -> None:
    index = told.history.index(told.event("signal_received"))
    told.history.insert(index, {**told.event("signal_received"), "kind": "step_timed_out"})


def timeout_before_signal(told: Told) -> None:
    timed_out = told.event("signal_received")
    timed_out["kind"] = "step_timed_out"
    told.mail()["received_at"] = timed_out["created_at"] - timedelta(seconds=1)


def completed_twice(told: Told) -> None:
    told.repeat("step_completed")


def token_stands_still(told: Told) -> None:
    del told.event("step_started", 1)["data"]["set"]["lease_token"]


def lease_taken_over(told: Told) -> None:
    told.history.remove(told.event("step_failed"))


def undone_twice(told: Told) -> None:
    told.repeat("step_compensated")


def undone_in_order(told: Told) -> None:
    first, second = (told.event("step_compensated", which) for which in (0, 1))
    for name in ("visit", "step"):
        first[name], second[name] = second[name], first[name]


def forward_after_undo(told: Told) -> None:
    told.add({**told.event("step_completed"), "data": {}})


def key_twice(told: Told) -> None:
    other = {**told.row, "id": "other"}
    told.tables.instances["other"] = other  # type: ignore[index]
    told.tables.events["other"] = []  # type: ignore[index]


def too_many_attempts(told: Told) -> None:
    told.tables.limits["book"] = 1  # type: ignore[index]


def too_many_attempts_to_undo(told: Told) -> None:
    undone = told.event("step_compensated")
    for _ in range(3):
        told.history.insert(told.history.index(undone), {**undone, "kind": "compensation_started"})


def called_again_too_early(told: Told) -> None:
    received = told.event("signal_received")
    before = told.history[told.history.index(received) - 1]
    before["data"]["set"] |= {"handling": f"signal:{received['data']['signal_id']}"}


def too_early(told: Told) -> None:
    started = told.event("step_started", 1)
    started["created_at"] -= timedelta(seconds=9)


def moved_after_the_end(told: Told) -> None:
    told.add({**told.event("workflow_started"), "kind": "workflow_paused", "data": {"set": {"paused": True}}})


def other_sequence(told: Told) -> None:
    told.event("step_completed")["data"]["set"]["step_sequence"] = ["book"]


def other_step(told: Told) -> None:
    told.event("step_completed")["data"]["set"]["current_step"] = "fail"


@pytest.mark.parametrize(
    ("number", "tamper"),
    [
        (2, drop_event),
        (2, illegal_move),
        (2, other_column),
        (2, other_type),
        (3, received_twice),
        (3, consumed_without_event),
        (3, newer_before_older),
        (3, kept_after_the_end),
        (3, discarded_without_reason),
        (4, timeout_beside_signal),
        (4, timeout_before_signal),
        (5, completed_twice),
        (5, token_stands_still),
        (6, lease_taken_over),
        (7, undone_twice),
        (7, undone_in_order),
        (7, forward_after_undo),
        (8, key_twice),
        (11, too_many_attempts),
        (11, too_many_attempts_to_undo),
        (11, called_again_too_early),
        (11, too_early),
        (13, moved_after_the_end),
        (14, other_sequence),
        (14, other_step),
    ],
)
def test_what_is_wrong_is_found(number: int, tamper: Tamper) -> None:
    told = Told(undone())
    assert told.found(number) == []

    tamper(told)

    assert told.found(number)


@pytest.mark.parametrize(
    ("number", "name", "value"), [(13, "result", "another"), (13, "version", 99), (8, "input", {"a": 1})]
)
def test_what_may_not_change_between_two_readings_is_found(number: int, name: str, value: Any) -> None:
    before = undone()
    now = Told(before)
    now.row[name] = value

    assert list(invariants.INVARIANTS[number](now.tables, before))


def test_a_signal_that_is_lost_or_goes_back_is_found_between_two_readings() -> None:
    instance = settled(engine.start(Approval))
    engine.signal(instance, "approved")
    pending = invariants.read()
    settled(instance)
    consumed = invariants.read()
    lost = Told(consumed)
    lost.tables.signals.clear()  # type: ignore[attr-defined]

    assert list(invariants.invariant_3(consumed, pending)) == []
    assert next(invariants.invariant_3(pending, consumed)).endswith("went from consumed to pending")
    assert next(invariants.invariant_3(lost.tables, pending)).endswith("is lost")
