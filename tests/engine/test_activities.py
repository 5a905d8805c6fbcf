from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from tests.engine.calls import calling, claimed
from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import ONCE, data_of, error_of, events, kinds, later, seconds_until, settled
from workflow_engine import (
    Await,
    Context,
    Fail,
    Outcome,
    Retry,
    Sleep,
    engine,
)
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload


def test_an_activity_runs_outside_any_transaction_with_its_attempt_committed() -> None:
    seen: list[WorkflowInstance] = []

    def call(ctx: Context) -> dict[str, Any]:
        seen.append(reload(ctx.instance_id))
        return {"id": 1}

    instance = settled(engine.start(calling(call)))

    (during,) = seen
    assert (during.status, during.attempts, during.lease_token, during.has_lease) == ("in_progress", 1, 1, True)
    assert during.due_at == during.poll_at
    assert (instance.status, instance.context, instance.lease_owner) == ("completed", {"id": 1}, "")
    assert kinds(instance) == [
        "workflow_started",
        "step_started",
        "step_completed",
        "step_completed",
        "workflow_completed",
    ]


@pytest.mark.django_db(transaction=True)
def test_an_activity_has_no_transaction_around_it() -> None:
    seen: list[bool] = []
    instance = settled(engine.start(calling(lambda ctx: seen.append(connection.in_atomic_block))))

    assert (instance.status, seen) == ("completed", [False])


def test_an_activity_gets_its_lease_and_its_deadline() -> None:
    seen: list[tuple[Any, ...]] = []

    def call(ctx: Context) -> None:
        seen.append((ctx.attempt, ctx.deadline - ctx.now if ctx.deadline else None, ctx.lease_remaining()))

    settled(engine.start(calling(call, timeout=200, lease=30)))

    ((attempt, until, remaining),) = seen
    assert (attempt, until) == (1, timedelta(seconds=200))
    assert timedelta(seconds=20) < remaining <= timedelta(seconds=30)


@pytest.mark.parametrize(("timeout", "lease", "seconds"), [(300, 60, 60), (20, 60, 20)])
def test_a_lease_lasts_no_longer_than_the_attempt_may(timeout: float, lease: float, seconds: int) -> None:
    instance = engine.start(calling(lambda ctx: None, timeout=timeout, lease=lease))
    claimed(instance)

    assert seconds_until(reload(instance).due_at) in range(seconds - 10, seconds + 1)


def test_the_idempotency_key_is_one_per_visit_and_another_for_other_visits() -> None:
    keys: list[str] = []

    def call(ctx: Context) -> Outcome | None:
        keys.append(ctx.idempotency_key)
        return Retry("again", after=0) if ctx.attempt == 1 else None

    workflow = calling(call)
    for _ in range(2):
        settled(engine.start(workflow))

    assert len(keys[0]) == 64
    assert keys[0] == keys[1] != keys[2] == keys[3]


@pytest.mark.parametrize("failure", [ValueError("down"), Retry("down"), SystemExit("down")])
def test_an_attempt_that_fails_is_tried_again(failure: Any) -> None:
    def call(ctx: Context) -> Any:
        if ctx.attempt == 2:
            return {"ok": True}
        if isinstance(failure, BaseException):
            raise failure
        return failure

    instance = settled(engine.start(calling(call)))
    assert (instance.status, instance.attempts, instance.lease_owner) == ("in_progress", 1, "")
    assert error_of(instance)[1] == "down"
    assert seconds_until(instance.due_at) in range(5, 11)

    instance = later(instance, seconds=11)

    assert (instance.status, instance.lease_token, instance.error) == ("completed", 2, None)
    assert [event.attempt for event in events(instance, "step_started")] == [1, 2]


@pytest.mark.parametrize("answer", [Fail("declined"), {"a": {1, 2}}, 3, object()])
def test_what_is_final_ends_the_activity_at_once(answer: Any) -> None:
    calls: list[int] = []

    def call(ctx: Context) -> Any:
        calls.append(ctx.attempt)
        return answer

    instance = settled(engine.start(calling(call)))

    assert (instance.status, instance.lease_owner, calls) == ("failed", "", [1])


def test_a_result_that_can_not_be_stored_fails_the_attempt_with_its_key_path() -> None:
    instance = settled(engine.start(calling(lambda ctx: {"charge": {"at": float("nan")}}, retry=ONCE)))

    assert (instance.status, error_of(instance)) == (
        "failed",
        ("NotSerializableError", "updates at charge.at: nan is not a JSON number; store None or a string"),
    )


def test_an_activity_may_await_and_sleep() -> None:
    instance = settled(engine.start(calling(lambda ctx: Await("done", timeout=3600))))
    assert (instance.status, instance.lease_owner, instance.awaiting_signals) == ("awaiting", "", ["done"])
    engine.signal(instance, "done", 5)
    assert settled(instance).context == {"answer": 5}

    napping = settled(engine.start(calling(lambda ctx: Sleep(60))))
    assert napping.status == "sleeping"
    assert later(napping, seconds=60).status == "completed"


def test_a_signal_that_comes_while_the_activity_runs_is_taken_when_it_parks() -> None:
    def call(ctx: Context) -> Outcome:
        engine.signal(ctx.instance_id, "done", "fast")
        return Await("done")

    instance = settled(engine.start(calling(call)))

    assert (instance.status, instance.context) == ("completed", {"answer": "fast"})


def test_an_activity_that_writes_commits_by_itself_and_keeps_what_it_wrote_when_it_fails() -> None:
    def call(ctx: Context) -> None:
        leave_effect(ctx)
        raise ValueError("too late")

    settled(engine.start(calling(call, retry=ONCE)))

    assert Effect.objects.count() == 1


def test_an_events_duration_is_that_of_the_users_code() -> None:
    instance = settled(engine.start(calling(lambda ctx: None)))

    started, completed = events(instance)[1:3]
    assert started.duration is None
    assert completed.duration is not None
    assert (data_of(started, "set")["attempts"], completed.attempt) == (1, 1)
