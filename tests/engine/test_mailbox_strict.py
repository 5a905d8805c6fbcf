from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from tests.shop.workflows import Approval, WaitForGo
from tests.support import mailbox, settled
from workflow_engine import (
    Await,
    Context,
    Outcome,
    RetryPolicy,
    Signal,
    SignalNotAwaitedError,
    Workflow,
    engine,
    step,
)
from workflow_engine.models import WorkflowSignal


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with override_settings(WORKFLOW_ENGINE={"SIGNALS_BUFFER_EARLY": False}):
        yield


def test_a_signal_that_is_visibly_not_awaited_is_refused() -> None:
    instance = settled(engine.start(Approval))

    with pytest.raises(SignalNotAwaitedError) as raised:
        engine.signal(instance, "go")

    assert str(raised.value) == (
        f"Workflow instance {instance.pk} does not await 'go' (it awaits approved, refused)"
        " and WORKFLOW_ENGINE['SIGNALS_BUFFER_EARLY'] is False. Send it once it is awaited."
    )
    assert mailbox(instance) == []


def test_an_instance_that_awaits_nothing_says_so() -> None:
    instance = engine.start(Approval)

    with pytest.raises(SignalNotAwaitedError) as raised:
        engine.signal(instance, "approved")

    assert str(raised.value) == (
        f"Workflow instance {instance.pk} does not await 'approved' (it awaits nothing)"
        " and WORKFLOW_ENGINE['SIGNALS_BUFFER_EARLY'] is False. Send it once it is awaited."
    )


def test_an_awaited_signal_is_taken() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "go")

    assert settled(instance).status == "completed"


def test_a_signal_that_is_not_awaited_any_more_when_it_is_looked_at_is_rejected() -> None:
    class Twice(Workflow):
        name = "twice"

        @step
        def one(self, ctx: Context) -> Outcome:
            return Await("go")

        @step
        def two(self, ctx: Context) -> Outcome:
            return Await("come")

    instance = settled(engine.start(Twice))
    engine.signal(instance, "go", 1)
    second = engine.signal(instance, "go", 2)
    instance = settled(instance)

    second.refresh_from_db()
    assert instance.awaiting_signals == ["come"]
    assert mailbox(instance) == [("go", "consumed"), ("go", "rejected")]
    assert second.reason == "it was not awaited, and SIGNALS_BUFFER_EARLY is False"


def test_a_signal_that_is_awaited_by_a_paused_instance_is_kept_until_it_resumes() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.pause(instance)
    instance = settled(instance)
    engine.signal(instance, "go")
    assert mailbox(settled(instance))[-1] == ("go", "buffered")

    engine.resume(instance)

    assert settled(instance).status == "completed"


def test_a_signal_that_comes_while_an_earlier_ones_handler_is_to_be_tried_again_is_kept() -> None:
    class Shaky(Workflow):
        name = "shaky"

        @step(retry=RetryPolicy(max_attempts=2, initial_delay=10, jitter=False))
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> None:
            raise ValueError("not now")

    instance = settled(engine.start(Shaky))
    engine.signal(instance, "go", 1)
    instance = settled(instance)
    assert instance.awaiting_signals == ["go"]
    engine.signal(instance, "go", 2)
    settled(instance)

    assert list(WorkflowSignal.objects.order_by("id").values_list("data", "state")) == [
        (1, "buffered"),
        (2, "buffered"),
    ]
