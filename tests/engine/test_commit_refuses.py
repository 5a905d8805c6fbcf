"""What COMMIT refuses, and steps that harm the transaction they run in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from tests.shop.models import Counter, Effect, Line
from tests.shop.workflows import CountUp, OneStep, leave_effect
from tests.support import TWICE, error_of, kinds, later, mailbox, settled
from workflow_engine import Await, Context, Outcome, Signal, Workflow, engine, step
from workflow_engine.domain.registry import registry
from workflow_engine.engine import Answer
from workflow_engine.testing import reload

pytestmark = pytest.mark.django_db(transaction=True)


def missing_counter(ctx: Context) -> None:
    """Harmless until COMMIT, when the database looks for the counter."""
    leave_effect(ctx)
    Line.objects.create(counter_id=10_000)


needs_deferred_constraints = pytest.mark.skipif(
    connection.vendor == "mysql", reason="MySQL and MariaDB check every constraint at once"
)


@needs_deferred_constraints
def test_a_step_whose_writes_are_refused_at_commit_has_failed_and_others_go_on() -> None:
    class Refused(Workflow):
        name = "refused"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            missing_counter(ctx)

    refused, fine = engine.start(Refused), engine.start(CountUp)
    refused = settled(refused)

    assert (refused.status, refused.attempts, error_of(refused)[0]) == ("in_progress", 1, "IntegrityError")
    assert reload(fine).status == "completed"
    refused = later(refused, seconds=11)
    assert (refused.status, refused.attempts) == ("failed", 2)
    assert kinds(refused) == ["workflow_started", "step_failed", "step_failed", "workflow_failed"]
    assert not Effect.objects.filter(instance_id=refused.pk).exists()
    assert not Line.objects.exists()


@needs_deferred_constraints
def test_a_signals_handler_whose_writes_are_refused_at_commit_keeps_its_signal() -> None:
    class Refused(Workflow):
        name = "refused"

        @step(retry=TWICE)
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

        @wait.on_signal
        def went(self, ctx: Context, signal: Signal) -> None:
            if ctx.attempt == 1:
                missing_counter(ctx)

    instance = settled(engine.start(Refused))
    engine.signal(instance, "go")
    instance = settled(instance)
    assert (instance.status, instance.attempts, mailbox(instance)) == ("awaiting", 1, [("go", "buffered")])

    instance = later(instance, seconds=11)

    assert (instance.status, mailbox(instance)) == ("completed", [("go", "consumed")])


@needs_deferred_constraints
def test_an_atomic_undo_whose_writes_are_refused_at_commit_is_tried_again() -> None:
    class Refused(Workflow):
        name = "refused"

        @step
        def book(self, ctx: Context) -> None: ...

        @book.compensation(retry=TWICE, atomic=True)
        def cancel(self, ctx: Context, result: Any) -> None:
            if ctx.attempt == 1:
                missing_counter(ctx)

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("go")

    instance = settled(engine.start(Refused))
    engine.cancel(instance)
    instance = settled(instance)
    assert (instance.status, instance.compensation_stack[0]["undo_attempts"]) == ("compensating", 1)

    assert later(instance, seconds=11).status == "cancelled"


def mark_for_rollback(ctx: Context) -> None:
    transaction.set_rollback(True)


def swallow_orm_error(ctx: Context) -> None:
    Counter.objects.create(name="twice")
    with suppress(IntegrityError):
        Counter.objects.create(name="twice")


def leave_by_exit(ctx: Context) -> None:
    raise SystemExit(1)


HARM: list[tuple[Callable[[Context], Any], str, str]] = [
    (mark_for_rollback, "TransactionBrokenError", "marked the transaction for rollback"),
    (swallow_orm_error, "TransactionBrokenError", "marked the transaction for rollback"),
    (lambda ctx: connection.close(), "TransactionBrokenError", "closed the database connection"),
    (leave_by_exit, "SystemExit", ""),
]


@pytest.mark.parametrize(("harm", "kind", "told"), HARM)
def test_a_step_that_harms_its_transaction_fails_leaves_nothing_and_is_tried_again(
    harm: Callable[[Context], Any], kind: str, told: str
) -> None:
    class Harms(Workflow):
        name = "harms"

        @step(retry=TWICE)
        def work(self, ctx: Context) -> None:
            leave_effect(ctx)
            if ctx.attempt == 1:
                harm(ctx)

    instance, other = engine.start(Harms), engine.start(OneStep)
    instance = settled(instance)

    assert (instance.status, instance.attempts, error_of(instance)[0]) == ("in_progress", 1, kind)
    if told:
        assert error_of(instance)[1] == (
            f"Step 'work' {told}, so none of its writes can be kept. A @step runs inside the engine's transaction: let"
            " database errors propagate or catch them around an atomic() block of your own, and never close the"
            " connection."
        )
    assert not Effect.objects.exists()
    assert reload(other).status == "completed"
    assert later(instance, seconds=11).status == "completed"
    assert Effect.objects.count() == 1


def test_a_workflow_that_this_process_forgot_in_the_middle_of_a_turn_breaks_nobody() -> None:
    class Forgets(Workflow):
        name = "forgets"

        @step
        def work(self, ctx: Context) -> None:
            del registry._classes["forgets", 1]

        @step
        def after(self, ctx: Context) -> None: ...

    instance = engine.start(Forgets)

    assert engine.drive(instance).answer == Answer.NO_CODE
    assert reload(instance).current_step == "after"
