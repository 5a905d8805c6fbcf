from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.exceptions import DefinitionError, InvalidOutcomeError

DURATION = "Give a timedelta or a number of seconds, from 0 up to 1000 years."


def seconds(*values: float) -> list[timedelta]:
    return [timedelta(seconds=value) for value in values]


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (RetryPolicy(jitter=False), seconds(5, 10, 20, 40, 80, 160, 300, 300)),
        (RetryPolicy(jitter=False, initial_delay=1, multiplier=3, max_delay=20), seconds(1, 3, 9, 20)),
        (RetryPolicy(jitter=False, initial_delay=timedelta(minutes=1), multiplier=1), seconds(60, 60, 60)),
        (RetryPolicy(jitter=False, initial_delay=0), seconds(0, 0)),
        (RetryPolicy(jitter=False, initial_delay=10, max_delay=5), seconds(5, 5)),
        (RetryPolicy(backoff=lambda attempt: attempt * 100), seconds(100, 200, 300, 400)),
        (RetryPolicy(backoff=lambda attempt: timedelta(minutes=attempt)), seconds(60, 120)),
    ],
    ids=["default", "slow start", "constant", "at once", "capped", "backoff in seconds", "backoff in minutes"],
)
def test_delays_grow_up_to_the_cap_unless_a_backoff_gives_them(policy: RetryPolicy, delays: list[timedelta]) -> None:
    assert [policy.delay_after(attempt) for attempt in range(1, len(delays) + 1)] == delays


@pytest.mark.parametrize(("drawn", "delay"), [(0.0, 5.0), (0.5, 7.5), (1.0, 10.0)])
def test_jitter_draws_from_the_upper_half_of_the_delay(drawn: float, delay: float) -> None:
    assert RetryPolicy().delay_after(2, jitter=lambda: drawn) == timedelta(seconds=delay)


@given(attempt=st.integers(1, 10**6), multiplier=st.floats(1, 1e6))
def test_no_attempt_is_too_late_for_a_delay_within_the_cap(attempt: int, multiplier: float) -> None:
    policy = RetryPolicy(multiplier=multiplier)
    assert timedelta(seconds=2.5) <= policy.delay_after(attempt) <= timedelta(seconds=300)


@pytest.mark.parametrize(
    ("policy", "attempts", "allowed"),
    [
        (RetryPolicy(), 2, True),
        (RetryPolicy(), 3, False),
        (RetryPolicy(max_attempts=1), 0, True),
        (RetryPolicy(max_attempts=1), 1, False),
    ],
)
def test_max_attempts_counts_all_attempts(policy: RetryPolicy, attempts: int, *, allowed: bool) -> None:
    assert policy.allows_another(attempts) is allowed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attempts": 0}, "max_attempts is 0. Count all attempts: 1 or more; 1 is no retry."),
        ({"max_attempts": True}, "max_attempts is True. Count all attempts: 1 or more; 1 is no retry."),
        ({"max_attempts": 2.5}, "max_attempts is 2.5. Count all attempts: 1 or more; 1 is no retry."),
        ({"multiplier": 0.5}, "multiplier is 0.5. Give a number of at least 1."),
        ({"multiplier": float("nan")}, "multiplier is nan. Give a number of at least 1."),
        ({"multiplier": float("inf")}, "multiplier is inf. Give a number of at least 1."),
        ({"multiplier": "2"}, "multiplier is '2'. Give a number of at least 1."),
        ({"initial_delay": -1}, f"initial_delay is -1. {DURATION}"),
        ({"max_delay": "1h"}, f"max_delay is '1h'. {DURATION}"),
        ({"backoff": 5}, "backoff is 5. Give a function of the attempt that returns a duration."),
    ],
)
def test_a_wrong_policy_fails_where_it_is_written(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        RetryPolicy(**options)
    assert str(refused.value) == f"RetryPolicy: {message}"


def test_a_backoff_that_returns_no_duration_is_named() -> None:
    nothing: Any = None
    with pytest.raises(InvalidOutcomeError) as refused:
        RetryPolicy(backoff=lambda attempt: nothing).delay_after(1)
    assert str(refused.value) == f"What RetryPolicy(backoff=…) returned is None. {DURATION}"
