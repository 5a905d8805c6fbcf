"""Work under a lease that meets what nobody planned: code that changes, handlers that are slow, locks in the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.shop.models import Counter
from tests.support import ONCE, TWICE, error_of, kinds, later, settled
from tests.traps import needs
from tests.traps.background import PATIENCE, eventually, in_thread, wait_for
from workflow_engine import Context, LeaseLost, Workflow, activity, clock, engine, step
from workflow_engine.domain.registry import registry
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain, reload
from workflow_engine.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)

Call = Callable[[Context], Any]


def charging(call: Call, *, decorator: Any = activity, **options: Any) -> type[Workflow]:
    """A workflow that calls `call` in its first step. A second one takes the place of the first, as a deploy does."""
    registry._classes.pop(("charging", 1), None)

    def run(self: object, ctx: Context) -> Any:
        return call(ctx)

    class Charging(Workflow):
        name = "charging"
        charge = decorator(**{"retry": TWICE, **options})(run)

        @step
        def ship(self, ctx: Context) -> None: ...

    return Charging


def count(name: str) -> None:
    """Committed at once: outside a step there is no transaction."""
    Counter.objects.create(name=name)


def names() -> list[str]:
    return sorted(Counter.objects.values_list("name", flat=True))


def test_code_that_became_a_step_does_not_run_beside_the_lease_of_the_activity_it_was() -> None:
    """A deploy while a worker of the old code is at it. (A lease is read from the row, not from the definition.)"""
    answers: list[Answer] = []

    def deploy(ctx: Context) -> None:
        count("by the activity")
        charging(lambda ctx: count("by the step"), decorator=step)
        for shift in (0, 59):
            with clock.shifted(timedelta(seconds=shift)):
                answers.append(engine.drive(ctx.instance_id).answer)
                Worker().run(burst=True)

    instance = settled(engine.start(charging(deploy, lease=60)))
    assert answers == [Answer.NOT_DUE, Answer.NOT_DUE]
    assert (instance.status, names()) == ("completed", ["by the activity"])


def test_when_that_lease_is_lost_the_step_takes_over_with_the_attempts_left() -> None:
    def deploy_and_die(ctx: Context) -> None:
        charging(lambda ctx: count(f"by the step, attempt {ctx.attempt}"), decorator=step)
        raise KeyboardInterrupt

    instance = engine.start(charging(deploy_and_die, lease=60))
    with pytest.raises(KeyboardInterrupt):
        engine.advance(instance)
    assert settled(instance).has_lease
    later(instance, seconds=61)
    instance = later(instance, seconds=11)
    assert (instance.status, names()) == ("completed", ["by the step, attempt 2"])
    assert kinds(instance)[1:4] == ["step_started", "step_failed", "step_completed"]


def test_code_that_became_an_activity_starts_anew_as_one() -> None:
    def deploy(ctx: Context) -> None:
        charging(lambda ctx: count(f"by the activity, attempt {ctx.attempt}"))
        raise ValueError("as a step it never worked")

    instance = settled(engine.start(charging(deploy, decorator=step)))
    assert error_of(instance) == ("ValueError", "as a step it never worked")
    instance = later(instance, seconds=11)
    assert (instance.status, names()) == ("completed", ["by the activity, attempt 2"])


def test_a_handler_that_needs_three_times_its_lease_keeps_it_by_heartbeats() -> None:
    def slow(ctx: Context) -> dict[str, int]:
        for _ in range(4):
            clock.shift(timedelta(seconds=45))
            assert engine.drive(ctx.instance_id).answer == Answer.NOT_DUE
            ctx.heartbeat()
        return {"attempt": ctx.attempt}

    instance = settled(engine.start(charging(slow, lease=60)))
    assert (instance.status, dict(instance.context)) == ("completed", {"attempt": 1})
    assert kinds(instance).count("step_started") == 1


def test_without_heartbeats_it_is_taken_over_once_and_records_nothing() -> None:
    """Its lease is over, so another attempt may be running by now: only one of the two may speak."""
    attempts: list[Context] = []
    reasons: list[str] = []

    def slow(ctx: Context) -> dict[str, int]:
        attempts.append(ctx)
        if ctx.attempt == 1:
            clock.shift(timedelta(seconds=180))
            drain()  # another worker notes the loss; its retry is due later
            clock.shift(timedelta(seconds=11))
            drain()  # and runs the second attempt
        else:
            stood_still: Any = attempts[0].lease
            stood_still.sent_at = clock.monotonic()  # the clock of a frozen machine does not know of the loss
            try:
                attempts[0].heartbeat()
            except LeaseLost as lost:
                reasons.append(lost.reason)
        return {"attempt": ctx.attempt}

    instance = settled(engine.start(charging(slow, lease=60)))
    assert [ctx.attempt for ctx in attempts] == [1, 2]
    assert reasons == ["it was taken over, or its attempt was given up"]
    assert (instance.status, dict(instance.context)) == ("completed", {"attempt": 2})
    assert kinds(instance).count("step_completed") == 2  # charge and ship
    assert kinds(instance)[1:5] == ["step_started", "step_failed", "step_started", "step_completed"]


def test_a_handler_sees_by_its_own_clock_that_its_lease_is_over() -> None:
    """Without asking the database, from the monotonic time at which the lease was asked for."""
    seen: list[object] = []

    def slow(ctx: Context) -> None:
        eventually(lambda: ctx.lease_remaining() <= timedelta())
        with CaptureQueriesContext(connection) as queries, pytest.raises(LeaseLost) as lost:
            ctx.heartbeat()
        seen.extend((lost.value.reason, len(queries)))

    engine.advance(engine.start(charging(slow, lease=0.2, retry=ONCE)))
    assert seen == ["it ran out before this heartbeat", 0]


@needs.server
def test_a_result_that_waited_for_a_lock_until_the_lease_was_over_is_not_recorded() -> None:
    """The time is read after the wait: PostgreSQL and MariaDB say the time at which the waiting began."""
    locked, handled = threading.Event(), threading.Event()

    def handle(ctx: Context) -> None:
        wait_for(locked)
        handled.set()

    instance = engine.start(charging(handle, lease=1, retry=ONCE))

    def hold_until_the_lease_is_over() -> None:
        def claimed() -> WorkflowInstance | None:
            return WorkflowInstance.objects.filter(pk=instance.pk).exclude(lease_owner="").first()

        row = eventually(claimed)
        with transaction.atomic():
            WorkflowInstance.objects.select_for_update().get(pk=row.pk)
            locked.set()
            wait_for(handled)
            eventually(lambda: clock.now("default") > row.due_at)

    holder = in_thread(hold_until_the_lease_is_over)
    engine.advance(instance)
    holder.result(PATIENCE)
    instance = reload(instance)
    assert (instance.has_lease, kinds(instance)) == (True, ["workflow_started", "step_started"])


@pytest.mark.parametrize("where", ["step", "activity", "undo", "atomic undo"])
def test_a_handler_that_exits_fails_its_attempt_and_the_worker_goes_on(where: str) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit("goodbye")

    class Leaving(Workflow):
        name = "leaving"

        @step(retry=ONCE)
        def book(self, ctx: Context) -> None: ...

        @book.compensation(retry=ONCE, atomic=where == "atomic undo")
        def cancel(self, ctx: Context, result: Any) -> None:
            if "undo" in where:
                leave()

        work = (activity if where == "activity" else step)(retry=ONCE)(leave)

    leaving = engine.start(Leaving)
    others = [engine.start(charging(lambda ctx: None)) for _ in range(2)]
    drain()
    assert [reload(other).status for other in others] == ["completed", "completed"]
    leaving = reload(leaving)
    assert leaving.status == ("failed" if "undo" in where else "compensated")
    assert error_of(leaving) == ("SystemExit", "goodbye")
