"""Real transactions: what joins the caller's, what hooks of the user's may do, what COMMIT may refuse."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from tests.shop.models import Counter, Effect
from tests.shop.workflows import OneStep, WaitForGo, leave_effect
from tests.support import ONCE, TWICE, error_of, kinds, later, mailbox, settled
from workflow_engine import Context, IdempotencyConflictError, Workflow, engine, signals, step
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal
from workflow_engine.testing import drain, reload

pytestmark = pytest.mark.django_db(transaction=True)


class HookError(Exception):
    """What a hook of the user's raises."""


def raise_hook_error() -> None:
    raise HookError


@pytest.fixture
def sent() -> Any:
    """The names of all Django signals that are sent."""
    names: list[str] = []

    def receive(event: WorkflowEvent, **_: Any) -> None:
        names.append(event.kind)

    for signal in signals.BY_EVENT_KIND.values():
        signal.connect(receive)
    yield names
    for signal in signals.BY_EVENT_KIND.values():
        signal.disconnect(receive)


def in_a_savepoint_that_is_rolled_back(call: Callable[[], Any]) -> None:
    with suppress(HookError), transaction.atomic():
        call()
        raise_hook_error()


def in_a_transaction_that_is_rolled_back(call: Callable[[], Any]) -> None:
    call()
    transaction.set_rollback(True)


ROLLBACKS = [in_a_transaction_that_is_rolled_back, in_a_savepoint_that_is_rolled_back]


def committed(*calls: Callable[[], Any]) -> None:
    """Commit what the calls do; the hook that raises is one of them."""
    with transaction.atomic():
        for call in calls:
            call()


def register_a_hook_that_raises() -> None:
    transaction.on_commit(raise_hook_error)


@pytest.mark.parametrize("rolled_back", ROLLBACKS)
def test_a_start_that_is_rolled_back_leaves_nothing_and_sends_nothing(
    rolled_back: Callable[[Callable[[], Any]], None], sent: list[str]
) -> None:
    with transaction.atomic():
        rolled_back(lambda: engine.start(OneStep, idempotency_key="k"))

    assert not WorkflowInstance.objects.exists()
    assert not WorkflowEvent.objects.exists()
    assert (drain(), sent) == (0, [])


@pytest.mark.parametrize("rolled_back", ROLLBACKS)
@pytest.mark.parametrize("verb", ["signal", "cancel", "pause"])
def test_a_word_that_is_rolled_back_is_never_heard(
    verb: str, rolled_back: Callable[[Callable[[], Any]], None], sent: list[str]
) -> None:
    instance = settled(engine.start(WaitForGo))
    sent.clear()
    arguments = ["go"] if verb == "signal" else []
    with transaction.atomic():
        rolled_back(lambda: getattr(engine, verb)(instance, *arguments))

    assert not WorkflowSignal.objects.exists()
    instance = settled(instance)
    assert (instance.status, instance.paused, sent) == ("awaiting", False, [])


def test_a_key_whose_start_was_rolled_back_is_free_again() -> None:
    with transaction.atomic():
        engine.start(OneStep, context={"a": 1}, idempotency_key="k")
        transaction.set_rollback(True)

    instance = engine.start(OneStep, context={"a": 2}, idempotency_key="k")

    assert settled(instance).input == {"a": 2}


def test_a_start_commits_with_the_callers_rows_and_a_refused_one_takes_nothing_of_the_callers_along() -> None:
    with transaction.atomic():
        Counter.objects.create(name="order")
        engine.start(OneStep, idempotency_key="k")
        with pytest.raises(IdempotencyConflictError):
            engine.start(OneStep, context={"other": 1}, idempotency_key="k")
        Counter.objects.create(name="line")

    assert Counter.objects.count() == 2
    assert WorkflowInstance.objects.count() == 1


def test_nothing_runs_before_the_caller_commits() -> None:
    with transaction.atomic():
        instance = engine.start(OneStep)
        with pytest.raises(RuntimeError):
            engine.advance(instance)
        with pytest.raises(RuntimeError):
            engine.drive(instance)

    assert settled(instance).status == "completed"


def test_a_step_can_not_advance_another_instance_inside_its_own_transaction() -> None:
    other = engine.start(OneStep)

    class Nests(Workflow):
        name = "nests"

        @step(retry=ONCE)
        def work(self, ctx: Context) -> None:
            engine.advance(other)

    assert error_of(settled(engine.start(Nests)))[0] == "RuntimeError"
    assert reload(other).status == "completed"


def test_what_a_failed_attempt_started_and_sent_never_was(sent: list[str]) -> None:
    waiting = settled(engine.start(WaitForGo))
    sent.clear()

    class Sends(Workflow):
        name = "sends"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            engine.start(OneStep, idempotency_key="child")
            engine.signal(waiting, "go", {"attempt": ctx.attempt})
            if ctx.attempt == 1:
                raise ValueError("no")

    instance = settled(engine.start(Sends))
    assert WorkflowInstance.objects.filter(workflow_name="one_step").count() == 0
    assert mailbox(waiting) == []
    assert sent == ["workflow_started", "step_failed"]

    later(instance, seconds=11)

    assert settled(waiting).context == {"attempt": 2, "went": True}
    assert WorkflowInstance.objects.get(workflow_name="one_step").status == "completed"


def test_a_hook_of_the_callers_that_raises_loses_no_start() -> None:
    with pytest.raises(HookError):
        committed(register_a_hook_that_raises, lambda: engine.start(OneStep))
    with pytest.raises(HookError):
        committed(lambda: engine.start(OneStep), register_a_hook_that_raises)

    drain()

    assert [instance.status for instance in WorkflowInstance.objects.all()] == ["completed", "completed"]


def test_a_hook_after_ours_that_raises_loses_none_of_what_we_send(sent: list[str]) -> None:
    with pytest.raises(HookError):
        committed(lambda: engine.start(OneStep), register_a_hook_that_raises)

    assert sent == ["workflow_started"]
    assert settled(WorkflowInstance.objects.get()).status == "completed"


@pytest.mark.parametrize("error", [HookError(), IntegrityError("of the hook's own"), ValueError()])
def test_a_hook_of_a_step_that_raises_does_not_fail_the_step_and_loses_nothing(
    error: Exception, sent: list[str]
) -> None:
    def fail() -> None:
        raise error

    class Hooks(Workflow):
        name = "hooks"

        @step(retry=ONCE)
        def work(self, ctx: Context) -> None:
            leave_effect(ctx)
            transaction.on_commit(fail)
            engine.start(OneStep)
            transaction.on_commit(fail)

        @step
        def after(self, ctx: Context) -> None:
            leave_effect(ctx)

    instance = settled(engine.start(Hooks))

    assert (instance.status, instance.error) == ("completed", None)
    assert [effect.step for effect in Effect.objects.order_by("id")] == ["work", "after"]
    assert WorkflowInstance.objects.get(workflow_name="one_step").status == "completed"
    assert sent.count("workflow_completed") == 2
    assert kinds(instance).count("step_completed") == sent.count("step_completed") - 1


def test_a_hook_that_a_failed_attempt_registered_is_not_run() -> None:
    ran: list[int] = []

    class Hooks(Workflow):
        name = "hooks"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            transaction.on_commit(lambda: ran.append(ctx.attempt))
            if ctx.attempt == 1:
                raise ValueError("no")

    instance = settled(engine.start(Hooks))
    later(instance, seconds=11)

    assert ran == [2]
