from __future__ import annotations

import signal

import pytest
from django.db import close_old_connections

from tests.shop.models import Counter, Effect
from tests.shop.workflows import Approval, CountUp, Deadly, Gated, OneStep
from tests.support import error_of, events, kinds
from tests.worker.conftest import Gates
from tests.worker.processes import wait_until, worker
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance, WorkflowWorker
from workflow_engine.testing import reload

MANY = 200


def statuses() -> dict[str, int]:
    found: dict[str, int] = {}
    for status in WorkflowInstance.objects.values_list("status", flat=True):
        found[status] = found.get(status, 0) + 1
    return found


def each_step_was_done_once(count: int) -> None:
    effects = list(Effect.objects.values_list("instance_id", "step"))
    assert len(effects) == len(set(effects)) == 3 * count
    assert dict(Counter.objects.values_list("name", "value")) == {"first": count, "second": count, "third": count}


def test_several_workers_on_one_database_do_each_step_of_many_instances_exactly_once() -> None:
    for number in range(MANY):
        engine.start(CountUp, idempotency_key=f"{number}")
    close_old_connections()

    with worker("--burst") as one, worker("--burst") as two, worker("--burst") as three:
        ends = [process.ended() for process in (one, two, three)]

    assert [code for code, _ in ends] == [0, 0, 0], ends
    assert statuses() == {"completed": MANY}
    each_step_was_done_once(MANY)
    assert not WorkflowInstance.objects.exclude(suspect=False, recoveries=0).exists()


def test_one_command_runs_several_processes() -> None:
    for _ in range(20):
        engine.start(CountUp)

    with worker("--processes", "2", "--burst") as parent:
        code, said = parent.ended()

    assert (code, statuses()) == (0, {"completed": 20}), said
    each_step_was_done_once(20)


def test_a_burst_ends_when_nothing_is_due() -> None:
    waiting, done = engine.start(Approval), engine.start(OneStep)

    with worker("--burst") as process:
        code, said = process.ended()

    assert code == 0, said
    assert [reload(instance).status for instance in (waiting, done)] == ["awaiting", "completed"]
    assert not WorkflowWorker.objects.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("gate", ["inside", "outside"])
def test_a_signal_ends_a_worker_after_the_current_step_and_what_it_held_is_given_back(
    gate: str, number: int, gates: Gates
) -> None:
    instance = engine.start(Gated, context=gates.context)
    if gate == "outside":
        gates.open("inside")

    with worker(HOLD=600) as process:
        wait_until(lambda: gates.is_reached(gate), f"the gate {gate} is reached")
        process.send(number)
        gates.open(gate)
        code, said = process.ended()

    row = reload(instance)
    assert code == 0, said
    assert row.current_step == {"inside": "outside", "outside": "after"}[gate]
    assert (row.status, row.suspect, row.recoveries) == ("in_progress", False, 0)
    assert row.poll_at == row.due_at
    assert not Effect.objects.filter(step="after").exists()
    assert not WorkflowWorker.objects.exists()


def test_a_worker_makes_itself_known_while_it_runs() -> None:
    with worker() as process:
        wait_until(WorkflowWorker.objects.exists, "the worker registers itself")
        row = WorkflowWorker.objects.get()
        assert (row.kind, row.pid) == ("worker", process.pid)
        assert {"count_up:1", "approval:1"} <= set(row.knows)
        process.send(signal.SIGTERM)
        code, said = process.ended()

    assert code == 0, said
    assert not WorkflowWorker.objects.exists()


def test_a_step_whose_worker_is_killed_is_done_by_another_one_after_the_hold_exactly_once(gates: Gates) -> None:
    instance = engine.start(Gated, context=gates.context)
    gates.open("outside")
    with worker(HOLD=1) as killed:
        wait_until(lambda: gates.is_reached("inside"), "the step is running")
        killed.kill()
    row = reload(instance)
    assert (row.status, row.current_step, row.attempts, kinds(row)) == ("pending", "inside", 0, ["workflow_started"])
    assert not Effect.objects.exists()

    gates.open("inside")
    with worker(HOLD=1) as process:
        wait_until(lambda: reload(instance).is_terminal, "the instance ends")
        process.send(signal.SIGTERM)
        process.ended()

    row = reload(instance)
    assert (row.status, row.suspect, row.recoveries, row.error) == ("completed", False, 0, None)
    assert [effect.step for effect in Effect.objects.order_by("id")] == ["inside", "after"]


def test_an_activity_whose_worker_is_killed_is_a_lost_attempt_and_tried_again(gates: Gates) -> None:
    instance = engine.start(Gated, context=gates.context)
    gates.open("inside")
    with worker(HOLD=1) as killed:
        wait_until(lambda: gates.is_reached("outside"), "the activity is running")
        killed.kill()
    assert reload(instance).has_lease

    gates.open("outside")
    with worker(HOLD=1) as process:
        wait_until(lambda: reload(instance).is_terminal, "the instance ends")
        process.send(signal.SIGTERM)
        process.ended()

    row = reload(instance)
    assert (row.status, row.recoveries, row.lease_token) == ("completed", 0, 2)
    (lost,) = events(row, "step_failed")
    assert (lost.step, lost.attempt, lost.data["error"]["type"]) == ("outside", 1, "LeaseExpired")


def test_a_step_that_kills_its_process_ends_as_poison_while_others_finish(gates: Gates) -> None:
    deadly = engine.start(Deadly, context=gates.context)
    others = [engine.start(CountUp) for _ in range(5)]

    with worker("--processes", "2", HOLD=1, MAX_RECOVERIES=2) as parent:
        wait_until(lambda: reload(deadly).is_terminal, "the deadly instance ends")
        wait_until(lambda: all(reload(other).is_terminal for other in others), "the others end")
        parent.send(signal.SIGTERM)
        code, said = parent.ended()

    row = reload(deadly)
    assert code == 0, said
    assert (row.status, error_of(row)) == (
        "failed",
        ("Poison", "2 processes in a row died while they worked on it"),
    )
    assert kinds(row) == ["workflow_started", "step_failed", "workflow_failed"]
    # The first death is not counted yet: nobody knew that it was this instance.
    assert len((gates.directory / "deaths").read_text().splitlines()) == 3
    assert {reload(other).status for other in others} == {"completed"}
