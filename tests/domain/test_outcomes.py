from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never

import pytest

from workflow_engine.domain.outcomes import Await, Complete, Fail, Finish, Goto, Outcome, Retry, Sleep, classify
from workflow_engine.exceptions import FinalError, InvalidOutcomeError, UnknownOutcomeError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NONE: Any = None
A_LIST: Any = ["paid", "refused"]
A_DATE: Any = date(2026, 1, 1)
A_CLASS: Any = Goto
AN_ERROR: Any = ValueError("x")
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the point
NO_MOMENT = (
    "a naive datetime, which names no moment. Make it aware, with django.utils.timezone.make_aware(…), or give a"
    " duration."
)
DURATION = "Give a timedelta or a number of seconds, from 0 up to 1000 years."

EVERY_OUTCOME: list[Outcome] = [
    Complete(),
    Await("paid"),
    Sleep(5),
    Goto("charge"),
    Finish(),
    Retry("busy"),
    Fail("declined"),
]


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=repr)
def test_an_outcome_is_taken_as_it_is(outcome: Outcome) -> None:
    assert classify(outcome) is outcome


@pytest.mark.parametrize(
    ("returned", "outcome"),
    [
        (None, Complete()),
        ({}, Complete(updates={})),
        ({"paid": True}, Complete(updates={"paid": True})),
        (UserDict({"paid": True}), Complete(updates=UserDict({"paid": True}))),
    ],
)
def test_nothing_or_a_mapping_completes_the_step(returned: object, outcome: Outcome) -> None:
    assert classify(returned) == outcome


@pytest.mark.parametrize(
    ("returned", "shown"),
    [(3, "3 (int)"), (True, "True (bool)"), ("charge", "a str"), ([], "a list"), (Goto, "a type")],
)
def test_anything_else_is_a_failure_that_lists_every_accepted_form(returned: object, shown: str) -> None:
    with pytest.raises(UnknownOutcomeError) as refused:
        classify(returned)
    assert str(refused.value) == (
        f"The handler returned {shown}, which is not an outcome. Return None or a dict (completes the step, merging the"
        " dict into the context), or one of Complete, Await, Sleep, Goto, Finish, Retry, Fail."
    )


def test_outcomes_can_be_matched_exhaustively() -> None:
    def told(outcome: Outcome) -> object:
        match outcome:
            case Complete(updates, result) | Finish(result, updates):
                return updates, result
            case Await(names, timeout, updates):
                return names, timeout, updates
            case Sleep(until_or_for, updates):
                return until_or_for, updates
            case Goto(step, updates):
                return step, updates
            case Retry(reason, after):
                return reason, after
            case Fail(reason):
                return reason
        assert_never(outcome)

    assert [told(outcome) for outcome in EVERY_OUTCOME] == [
        (None, None),
        (("paid",), None, None),
        (timedelta(seconds=5), None),
        ("charge", None),
        (None, None),
        ("busy", None),
        "declined",
    ]


@pytest.mark.parametrize(
    ("given", "kept"), [(None, None), (60, timedelta(minutes=1)), (timedelta(1), timedelta(1)), (NOON, NOON)]
)
def test_a_timeout_is_a_duration_or_a_moment_or_none(given: Any, kept: object) -> None:
    assert Await("paid", timeout=given).timeout == kept


def test_a_signal_awaited_twice_is_awaited_once() -> None:
    assert Await("paid", "refused", "paid").names == ("paid", "refused")


def test_a_sleep_lasts_for_a_duration_or_until_a_moment() -> None:
    assert Sleep(1.5).until_or_for == timedelta(seconds=1.5)
    assert Sleep(NOON, {"slept": True}) == Sleep(until_or_for=NOON, updates={"slept": True})


def test_a_retry_waits_in_seconds_or_a_timedelta() -> None:
    assert Retry("busy", after=90) == Retry("busy", timedelta(seconds=90))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (Await, 'Await names no signal. Name at least one: Await("paid").'),
        (
            lambda: Await(A_LIST),
            'A signal name in Await is a list. Name the signals one by one: Await("paid", "refused").',
        ),
        (
            lambda: Await("paid", ""),
            'A signal name in Await is \'\'. Name the signals one by one: Await("paid", "refused").',
        ),
        (lambda: Await("paid", timeout=True), f"Await(timeout=…) is True. {DURATION}"),
        (lambda: Await("paid", timeout=NAIVE), f"Await(timeout=…) is {NO_MOMENT}"),
        (lambda: Sleep(NAIVE), f"Sleep(…) is {NO_MOMENT}"),
        (lambda: Sleep(A_DATE), f"Sleep(…) is a date. {DURATION}"),
        (lambda: Sleep(NONE), f"Sleep(…) is None. {DURATION}"),
        (lambda: Sleep(-1), f"Sleep(…) is -1. {DURATION}"),
        (lambda: Goto(A_CLASS), 'The step in Goto is a type. Give its key: Goto("charge").'),
        (lambda: Goto(""), "The step in Goto is ''. Give its key: Goto(\"charge\")."),
        (lambda: Retry(NONE), 'The reason in Retry is None. Say why: Retry("gateway busy").'),
        (lambda: Retry("busy", after=float("nan")), f"Retry(after=…) is nan. {DURATION}"),
        (lambda: Fail(AN_ERROR), 'The reason in Fail is a ValueError. Say why: Fail("card declined").'),
        (lambda: Fail(""), "The reason in Fail is ''. Say why: Fail(\"card declined\")."),
    ],
)
def test_an_outcome_refuses_what_it_cannot_mean(build: Callable[[], Outcome], message: str) -> None:
    with pytest.raises(InvalidOutcomeError) as refused:
        build()
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "build",
    [
        Complete,
        lambda updates: Await("paid", updates=updates),
        lambda updates: Sleep(1, updates),
        lambda updates: Goto("charge", updates),
        lambda updates: Finish(updates=updates),
    ],
    ids=["Complete", "Await", "Sleep", "Goto", "Finish"],
)
def test_updates_are_a_mapping(build: Callable[[Any], Outcome]) -> None:
    with pytest.raises(InvalidOutcomeError) as refused:
        build([("paid", True)])
    assert str(refused.value) == "`updates` is a list. Give a dict of what to merge into the context."


def test_no_retry_is_spent_on_a_wrong_outcome() -> None:
    assert issubclass(InvalidOutcomeError, FinalError)
    assert issubclass(UnknownOutcomeError, FinalError)


def test_an_outcome_cannot_be_changed() -> None:
    outcome: Any = Await("paid")
    with pytest.raises(FrozenInstanceError):
        outcome.names = ("refused",)
