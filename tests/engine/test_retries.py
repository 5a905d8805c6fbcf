from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.shop.models import Counter, Effect
from tests.shop.workflows import leave_effect
from tests.support import ONCE, THRICE, error_of, events, kinds, later, seconds_until, settled
from workflow_engine import Context, Fail, FinalError, Outcome, Retry, RetryPolicy, Workflow, engine, step


class Flaky:
    """A workflow whose only step does what is next in `script`: raises, or returns."""

    def __init__(self, *script: Any, retry: RetryPolicy = THRICE) -> None:
        attempts: list[int] = []
        keys: set[str] = set()
        self.attempts, self.keys = attempts, keys
        answers = list(script)

        class FlakyWork(Workflow):
            name = "flaky"

            @step(retry=retry)
            def work(self, ctx: Context) -> Any:
                attempts.append(ctx.attempt)
                keys.add(ctx.idempotency_key)
                leave_effect(ctx)
                answer = answers.pop(0)
                if isinstance(answer, BaseException):
                    raise answer
                return answer

        self.workflow = FlakyWork


def test_an_exception_is_tried_again_after_the_policys_delay() -> None:
    flaky = Flaky(ValueError("one"), ValueError("two"), {"ok": True})
    instance = settled(engine.start(flaky.workflow))

    assert (instance.status, instance.attempts, instance.current_step) == ("in_progress", 1, "work")
    assert instance.error == {"type": "ValueError", "message": "one", "step": "work", "visit": 1, "attempt": 1}
    assert seconds_until(instance.due_at) in range(5, 11)
    assert instance.poll_at == instance.due_at

    instance = later(instance, seconds=10)
    assert (instance.attempts, error_of(instance)) == (2, ("ValueError", "two"))
    assert seconds_until(instance.due_at) in range(20, 31)

    instance = later(instance, seconds=30)
    assert (instance.status, instance.attempts, instance.error, instance.context) == (
        "completed",
        2,
        None,
        {"ok": True},
    )
    assert (flaky.attempts, len(flaky.keys)) == ([1, 2, 3], 1)


def test_nothing_is_tried_before_it_is_due() -> None:
    flaky = Flaky(ValueError("one"), None)
    instance = settled(engine.start(flaky.workflow))

    later(instance, seconds=2)

    assert flaky.attempts == [1]


def test_the_writes_of_a_failed_attempt_are_gone_and_its_failure_is_recorded() -> None:
    flaky = Flaky(ValueError("one"), None)
    instance = settled(engine.start(flaky.workflow))
    assert (Effect.objects.count(), Counter.objects.count()) == (0, 0)

    later(instance, seconds=10)

    assert Effect.objects.count() == Counter.objects.get().value == 1


def test_the_last_attempt_fails_the_workflow() -> None:
    flaky = Flaky(*(ValueError(text) for text in ("one", "two", "three")))
    instance = settled(engine.start(flaky.workflow))
    instance = later(instance, seconds=11)
    instance = later(instance, seconds=31)

    assert (instance.status, instance.attempts, error_of(instance)) == ("failed", 3, ("ValueError", "three"))
    assert instance.due_at is instance.poll_at is None
    assert kinds(instance) == ["workflow_started", "step_failed", "step_failed", "step_failed", "workflow_failed"]
    assert [(event.attempt, event.data["final"]) for event in events(instance, "step_failed")] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert "ValueError: three" in events(instance, "step_failed")[-1].data["traceback"]


def test_the_traceback_begins_with_the_users_code() -> None:
    instance = settled(engine.start(Flaky(ValueError("one"), retry=ONCE).workflow))

    (failed,) = events(instance, "step_failed")
    lines = failed.data["traceback"].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith("in work")
    assert lines[-1] == "ValueError: one"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Fail("no money"), ("Fail", "no money")),
        (FinalError("never"), ("FinalError", "never")),
    ],
)
def test_what_is_final_is_not_tried_again(answer: Any, error: tuple[str, str]) -> None:
    flaky = Flaky(answer)
    instance = settled(engine.start(flaky.workflow))

    assert (instance.status, error_of(instance), flaky.attempts) == ("failed", error, [1])
    assert not Effect.objects.exists()


def test_a_retry_that_is_asked_for_counts_as_an_attempt_and_may_name_its_delay() -> None:
    flaky = Flaky(Retry("busy", after=timedelta(hours=2)), Retry("busy"), Retry("still busy"))
    instance = settled(engine.start(flaky.workflow))
    assert (instance.attempts, error_of(instance)) == (1, ("Retry", "busy"))
    assert seconds_until(instance.due_at) in range(7100, 7201)
    assert not Effect.objects.exists()

    instance = later(instance, hours=2)
    assert seconds_until(instance.due_at) in range(20, 31)

    instance = later(instance, seconds=31)
    assert (instance.status, error_of(instance)) == ("failed", ("Retry", "still busy"))


def test_a_backoff_of_ones_own_gives_the_delays() -> None:
    flaky = Flaky(ValueError("one"), ValueError("two"), None, retry=RetryPolicy(backoff=lambda attempt: 100 * attempt))
    instance = settled(engine.start(flaky.workflow))
    assert seconds_until(instance.due_at) in range(95, 101)

    instance = later(instance, seconds=100)
    assert seconds_until(instance.due_at) in range(195, 201)


def test_a_backoff_that_raises_does_not_lose_the_failure() -> None:
    flaky = Flaky(ValueError("one"), None, retry=RetryPolicy(backoff=lambda attempt: 1 // 0, jitter=False))
    instance = settled(engine.start(flaky.workflow))

    assert error_of(instance) == ("ValueError", "one")
    assert later(instance, seconds=6).status == "completed"


def test_the_workflows_policy_is_for_steps_without_their_own() -> None:
    class Patient(Workflow):
        name = "patient"
        retry = RetryPolicy(max_attempts=2, initial_delay=200, jitter=False)

        @step
        def work(self, ctx: Context) -> None:
            raise ValueError("no")

    instance = settled(engine.start(Patient))
    assert seconds_until(instance.due_at) in range(195, 201)
    assert later(instance, seconds=201).status == "failed"


def test_attempts_start_afresh_in_the_next_step() -> None:
    tried: list[tuple[str, int]] = []

    class Two(Workflow):
        name = "two"

        @step(retry=THRICE)
        def one(self, ctx: Context) -> Outcome | None:
            tried.append((ctx.step, ctx.attempt))
            return Retry("again", after=0) if ctx.attempt < 3 else None

        @step(retry=THRICE)
        def two(self, ctx: Context) -> Outcome | None:
            tried.append((ctx.step, ctx.attempt))
            return Retry("again", after=0) if ctx.attempt < 3 else None

    instance = settled(engine.start(Two))

    assert instance.status == "completed"
    assert tried == [("one", 1), ("one", 2), ("one", 3), ("two", 1), ("two", 2), ("two", 3)]


def test_an_exception_without_a_text_is_told_by_its_type() -> None:
    instance = settled(engine.start(Flaky(ValueError(), retry=ONCE).workflow))

    assert error_of(instance) == ("ValueError", "ValueError")


def test_the_text_of_an_error_is_cleaned_so_that_it_can_always_be_stored() -> None:
    instance = settled(engine.start(Flaky(ValueError("a\x00b\ud800c" + "x" * 5000), retry=ONCE).workflow))

    _, message = error_of(instance)
    assert message.startswith("a\N{REPLACEMENT CHARACTER}b?cxxx")
    assert (len(message), message[-1]) == (2000, "…")


@pytest.mark.parametrize("outcome", [Fail("a\x00b\ud800"), Retry("a\x00b\ud800")])
def test_the_reason_of_a_failure_is_cleaned_too(outcome: Outcome) -> None:
    instance = settled(engine.start(Flaky(outcome, retry=ONCE).workflow))

    assert error_of(instance)[1] == "a\N{REPLACEMENT CHARACTER}b?"


def test_an_error_whose_text_can_not_be_had_fails_the_step_all_the_same() -> None:
    class NastyError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    instance = settled(engine.start(Flaky(NastyError(), retry=ONCE).workflow))

    assert instance.status == "failed"
    assert instance.error is not None
    assert instance.error["type"] == "NastyError"


def test_a_step_that_wants_to_end_the_process_fails_and_the_worker_goes_on() -> None:
    instance = settled(engine.start(Flaky(SystemExit(3), retry=ONCE).workflow))

    assert (instance.status, error_of(instance)) == ("failed", ("SystemExit", "3"))
