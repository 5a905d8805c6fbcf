from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.inspection.flows import PAID, REFUSED
from workflow_engine import clock, engine
from workflow_engine.domain.events import EventKind
from workflow_engine.inspection.timeline import _SENTENCES, timeline
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def told(row: WorkflowInstance, *, last: int | None = None) -> list[str]:
    return [re.sub(r", in \d+ m?s", ", in ...", entry.text) for entry in timeline(row, last=last)]


def started(name: str, **context: Any) -> WorkflowInstance:
    row = engine.start(name, context=context, actor="anna")
    engine.drive(row)
    return row


def test_every_kind_of_event_has_a_sentence() -> None:
    assert set(_SENTENCES) == set(EventKind)


def test_the_way_of_a_parcel_is_told_in_sentences() -> None:
    row = started("parcel", carrier="busy")
    signal = engine.signal(row, PAID, actor="stripe")
    engine.drive(row)
    clock.shift(timedelta(hours=4))
    engine.drive(row)
    assert told(row) == [
        "started",
        "pack: done, in ...",
        "await_payment: waits for paid or refused, for at most 2 d",
        f"await_payment: got paid (#{signal.pk})",
        "await_payment: done, in ...",
        "ship: attempt 1 failed: RuntimeError: the carrier is busy, again after 3 h",
        "ship: attempt 2 failed: RuntimeError: the carrier is busy, for good",
        "failed",
    ]
    entries = timeline(row)
    assert [entry.actor for entry in entries[:4]] == ["anna", "", "", "stripe"]
    assert 'raise RuntimeError("the carrier\\nis busy")' in entries[5].traceback
    assert [entry.seq for entry in entries] == list(range(1, 9))


def test_only_the_end_is_told_if_asked_for() -> None:
    row = started("parcel")
    assert told(row, last=1) == ["await_payment: waits for paid or refused, for at most 2 d"]


def test_jumps_timeouts_and_final_failures_are_told() -> None:
    row = started("parcel")
    clock.shift(timedelta(days=3))
    engine.drive(row)
    assert told(row)[3:] == [
        "await_payment: paid or refused did not come in time",
        "await_payment: done, in ..., went to give_up",
        "give_up: attempt 1 failed: Fail: nobody paid, for good",
        "failed",
    ]


def test_sleeps_and_endings_are_told() -> None:
    row = started("parcel")
    engine.signal(row, PAID)
    engine.drive(row)
    clock.shift(timedelta(days=6))
    engine.drive(row)
    assert told(row)[-4:] == ["travel: sleeps, for 5 d", "travel: done", "arrive: done, in ...", "completed"]


def test_what_people_asked_for_is_told_with_its_reason() -> None:
    row = started("trip", airline="gone")
    engine.pause(row, reason="holidays")
    engine.drive(row)
    engine.resume(row)
    engine.drive(row)
    engine.cancel(row, reason="ill", actor="bob")
    for _ in range(4):
        engine.drive(row)
        clock.shift(timedelta(minutes=10))
    assert told(row)[3:] == [
        "paused: holidays",
        "resumed",
        "what was done is being undone: ill",
        "undo of flight: attempt 1 failed: LookupError: the airline is gone",
        "undo of flight: attempt 2 failed: LookupError: the airline is gone",
        "flight: could not be undone: LookupError: the airline is gone",
        "failed",
    ]


def test_an_undo_that_worked_is_told() -> None:
    row = started("trip")
    engine.cancel(row)
    engine.cancel(row)
    engine.drive(row)
    assert told(row)[3:] == [
        "what was done is being undone",
        "cancel was refused: Its steps are already being undone.",
        "flight: undone",
        "cancelled",
    ]


def test_a_refused_payment_names_its_signal() -> None:
    row = started("parcel")
    signal = engine.signal(row, REFUSED)
    engine.drive(row)
    assert f"await_payment: got refused (#{signal.pk})" in told(row)
