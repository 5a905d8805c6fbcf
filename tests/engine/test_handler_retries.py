from __future__ import annotations

from typing import Any

import pytest

from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import THRICE, error_of, events, kinds, later, mailbox, settled
from workflow_engine import (
    Await,
    Context,
    Fail,
    Goto,
    Outcome,
    Retry,
    Signal,
    UnhandledSignalsError,
    Workflow,
    engine,
    step,
)


class Shaky:
    """Awaits "go" for an hour; its handlers do what is next in `script`: raise, or return. What ran is in `calls`."""

    def __init__(self, *script: Any) -> None:
        calls: list[tuple[str, Any, int]] = []
        self.calls, self.script = calls, list(script)
        answer = self._answer

        class ShakyHandlers(Workflow):
            name = "shaky"

            @step(retry=THRICE)
            def wait(self, ctx: Context) -> Outcome:
                calls.append(("body", None, ctx.attempt))
                return Await("go", timeout=3600)

            @wait.on_signal
            def went(self, ctx: Context, signal: Signal) -> Any:
                calls.append(("signal", signal.id, ctx.attempt))
                leave_effect(ctx)
                return answer()

            @wait.on_timeout
            def late(self, ctx: Context) -> Any:
                calls.append(("timeout", None, ctx.attempt))
                leave_effect(ctx)
                return answer()

            @step
            def after(self, ctx: Context) -> None: ...

        self.workflow = ShakyHandlers

    def _answer(self) -> Any:
        answer = self.script.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def calls_of(self, kind: str) -> list[tuple[Any, int]]:
        return [(which, attempt) for called, which, attempt in self.calls if called == kind]


@pytest.mark.parametrize("failure", [ValueError("not now"), Retry("not now")])
def test_a_signals_handler_that_fails_is_called_again_with_the_same_signal_and_never_the_body(failure: Any) -> None:
    shaky = Shaky(failure, failure, {"ok": True})
    instance = settled(engine.start(shaky.workflow))
    first = engine.signal(instance, "go", 1)
    instance = settled(instance)

    assert (instance.status, instance.attempts, instance.handling) == ("awaiting", 1, f"signal:{first.pk}")
    assert error_of(instance)[1] == "not now"
    assert mailbox(instance) == [("go", "buffered")]
    assert not Effect.objects.exists()

    engine.signal(instance, "go", 2)
    instance = later(instance, seconds=11)
    instance = later(instance, seconds=31)

    assert (instance.status, instance.context, instance.error, instance.handling) == (
        "completed",
        {"ok": True},
        None,
        "",
    )
    assert shaky.calls_of("signal") == [(first.pk, 1), (first.pk, 2), (first.pk, 3)]
    assert shaky.calls_of("body") == [(None, 1)]
    assert mailbox(instance) == [("go", "consumed"), ("go", "discarded")]
    assert Effect.objects.count() == 1
    assert len(events(instance, "signal_received")) == 1


def test_the_last_failure_of_a_signals_handler_consumes_the_signal() -> None:
    shaky = Shaky(*(ValueError(text) for text in ("one", "two", "three")))
    instance = settled(engine.start(shaky.workflow))
    sent = engine.signal(instance, "go")
    instance = settled(instance)
    instance = later(instance, seconds=11)
    instance = later(instance, seconds=31)

    assert (instance.status, error_of(instance)) == ("failed", ("ValueError", "three"))
    assert mailbox(instance) == [("go", "consumed")]
    assert kinds(instance)[-5:] == ["step_failed", "step_failed", "signal_received", "step_failed", "workflow_failed"]
    assert [event.trigger for event in events(instance, "step_failed")] == [f"signal:{sent.pk}"] * 3


def test_a_retry_after_that_calls_the_handler_again_with_the_same_signal() -> None:
    shaky = Shaky(*(ValueError(text) for text in ("one", "two", "three")), {"ok": True})
    instance = settled(engine.start(shaky.workflow))
    sent = engine.signal(instance, "go")
    settled(instance)
    later(instance, seconds=11)
    later(instance, seconds=31)

    engine.retry(instance)
    instance = settled(instance)

    assert (instance.status, instance.context) == ("completed", {"ok": True})
    assert shaky.calls_of("signal") == [(sent.pk, 1), (sent.pk, 2), (sent.pk, 3), (sent.pk, 1)]
    assert shaky.calls_of("body") == [(None, 1)]
    assert mailbox(instance) == [("go", "consumed"), ("retry", "consumed")]


def test_a_failure_that_the_handler_decides_on_is_not_the_handlers_failure() -> None:
    shaky = Shaky(Fail("refused"), {"ok": True})
    instance = settled(engine.start(shaky.workflow))
    engine.signal(instance, "go", 1)
    instance = settled(instance)
    assert (instance.status, instance.handling, mailbox(instance)) == ("failed", "", [("go", "consumed")])

    engine.retry(instance)
    instance = settled(instance)

    assert (instance.status, instance.awaiting_signals) == ("awaiting", ["go"])
    assert shaky.calls_of("body") == [(None, 1), (None, 1)]


def test_a_timeouts_handler_that_fails_is_called_again_and_never_the_body() -> None:
    shaky = Shaky(ValueError("one"), Retry("two"), Goto("after"))
    instance = settled(engine.start(shaky.workflow))
    instance = later(instance, hours=1)
    assert (instance.status, instance.handling, instance.attempts) == ("awaiting", "timeout", 1)

    instance = later(instance, seconds=11)
    instance = later(instance, seconds=31)

    assert instance.status == "completed"
    assert shaky.calls == [("body", None, 1), ("timeout", None, 1), ("timeout", None, 2), ("timeout", None, 3)]
    assert Effect.objects.count() == len(events(instance, "step_timed_out")) == 1


def test_the_last_failure_of_a_timeouts_handler_fails_and_a_retry_calls_it_again() -> None:
    shaky = Shaky(*(ValueError(text) for text in ("one", "two", "three")), Goto("after"))
    instance = settled(engine.start(shaky.workflow))
    for units in ({"hours": 1}, {"seconds": 11}, {"seconds": 31}):
        instance = later(instance, **units)
    assert (instance.status, instance.handling) == ("failed", "timeout")

    engine.retry(instance)
    instance = settled(instance)

    assert instance.status == "completed"
    assert shaky.calls_of("body") == [(None, 1)]


def test_a_signal_that_comes_while_the_timeouts_handler_waits_for_its_retry_does_not_win_that_wait_too() -> None:
    shaky = Shaky(ValueError("one"), Goto("after"))
    instance = settled(engine.start(shaky.workflow))
    later(instance, hours=1)
    engine.signal(instance, "go")
    instance = settled(instance)
    assert (instance.handling, mailbox(instance)) == ("timeout", [("go", "buffered")])

    instance = later(instance, seconds=11)

    assert (instance.status, mailbox(instance)) == ("completed", [("go", "discarded")])


def test_an_await_for_several_names_without_a_handler_is_an_error_that_asks_for_one() -> None:
    class Several(Workflow):
        name = "several"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("yes", "no")

    instance = settled(engine.start(Several))

    kind, message = error_of(instance)
    assert kind == UnhandledSignalsError.__name__
    assert message == (
        "Step 'wait' awaits yes, no but has no on_signal handler. Declare one with @wait.on_signal:"
        " with several names the engine can't know what each means."
    )
