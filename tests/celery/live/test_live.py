"""Real prefork workers, a real broker, a real database. What happens to them is what happens in life, only sooner."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

pytest.importorskip("celery", reason="needs Celery: pip install -e '.[services]'")

from tests.celery.live import cells
from tests.celery.live.fleet import Fleet, killed_in_the_middle
from tests.celery.live.project.workflows import Dies, Order, Poison, Quick, Timer
from tests.shop.models import Effect
from tests.traps.background import eventually
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowWorker
from workflow_engine.testing import reload

pytestmark = pytest.mark.parametrize("fleet", [cells.cell(broker) for broker in cells.BROKERS], indirect=True)

ALL_OF_AN_ORDER = ["reserve", "charge", "charge", "await_payment", "pack", "ship"]
"""A call is made once per attempt, and all that is written in a step once."""


def ended(*rows: WorkflowInstance) -> Counter[str]:
    """Wait for all of them; how many ended how."""
    ids = [row.pk for row in rows]
    eventually(lambda: not WorkflowInstance.objects.live().filter(pk__in=ids).exists(), pause=0.1)
    return Counter(WorkflowInstance.objects.filter(pk__in=ids).values_list("status", flat=True))


def effects(row: WorkflowInstance) -> list[str]:
    return list(Effect.objects.filter(instance_id=row.pk).order_by("pk").values_list("step", flat=True))


def processes(step: str) -> set[int]:
    """Which ones ran that step."""
    return {int(note) for note in Effect.objects.filter(step=step).values_list("note", flat=True)}


def test_orders_run_from_end_to_end(fleet: Fleet) -> None:
    orders = [engine.start(Order) for _ in range(8)]
    for number, order in enumerate(orders):
        for _ in range(1 + number % 2):
            engine.signal(order, "paid", {"id": number}, idempotency_key=f"payment-{number}")
    assert ended(*orders) == {"completed": 8}
    assert [effects(order) for order in orders] == [ALL_OF_AN_ORDER] * 8
    assert [reload(order).result for order in orders] == [{"shipped": True}] * 8
    # A step with a queue of its own runs on a worker of that queue.
    assert processes("pack") <= fleet.packer.children
    assert processes("ship") <= fleet.worker.children


@pytest.mark.parametrize("where", ["step", "activity"])
def test_an_instance_outlives_a_worker_that_is_killed_in_the_middle(where: str, fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    row = engine.start(Dies, context={"where": where, "file": str(file)})
    killed = killed_in_the_middle(file)
    assert ended(row) == {"completed": 1}
    assert effects(row) == ["before", "in_a_step", "in_an_activity"]
    assert processes("before") == {killed}
    assert killed not in processes("in_an_activity")
    row = reload(row)
    assert (row.suspect, row.recoveries) == (False, 0)
    started = WorkflowEvent.objects.filter(instance_id=row.pk, kind="step_started", step="in_an_activity").count()
    assert started == (2 if where == "activity" else 1)


def test_an_instance_that_kills_every_worker_fails_and_others_go_on(fleet: Fleet) -> None:
    poison = engine.start(Poison)
    others = [engine.start(Quick) for _ in range(5)]
    assert ended(poison, *others) == {"failed": 1, "completed": 5}
    error = reload(poison).error
    assert error is not None
    assert (error["type"], error["message"]) == ("Poison", "1 processes in a row died while they worked on it")


def test_what_the_broker_lost_is_sent_again(fleet: Fleet) -> None:
    with fleet.without_worker():
        rows = [engine.start(Quick) for _ in range(5)]
        assert fleet.waiting() == 5
        fleet.lose_all_messages()
    assert ended(*rows) == {"completed": 5}
    assert [effects(row) for row in rows] == [["only"]] * 5


def test_messages_that_are_doubled_late_or_forged_change_nothing(fleet: Fleet) -> None:
    with fleet.without_worker():
        rows = [engine.start(Order) for _ in range(4)]
        for row in rows:
            engine.signal(row, "paid", idempotency_key="once")
        ids = [*(str(row.pk) for row in rows), "00000000-0000-7000-8000-000000000000", "nonsense"]
        for instance_id in ids * 6:
            fleet.app.send_task("workflow_engine.advance", [instance_id])
    assert ended(*rows) == {"completed": 4}
    assert [effects(row) for row in rows] == [ALL_OF_AN_ORDER] * 4


def test_many_that_wake_at_one_moment_wake_once_each_and_never_before_it(fleet: Fleet) -> None:
    due = clock.now("default") + timedelta(seconds=8)
    rows = [engine.start(Timer, context={"due": due.isoformat()}) for _ in range(60)]
    assert ended(*rows) == {"completed": 60}
    assert [effects(row) for row in rows] == [["wake"]] * 60
    assert min(datetime.fromisoformat(note) for note in Effect.objects.values_list("note", flat=True)) >= due


def test_a_restart_of_the_database_fails_nothing_and_otherwise_connections_are_kept(fleet: Fleet) -> None:
    assert ended(*[engine.start(Quick) for _ in range(6)]) == {"completed": 6}
    children, sessions, said = fleet.worker.children, _sessions(), len(fleet.worker.log.read_text())
    for _ in range(5):
        assert ended(engine.start(Quick)) == {"completed": 1}
    assert _sessions() >= sessions
    _end_sessions(_sessions())
    assert ended(*[engine.start(Quick) for _ in range(6)]) == {"completed": 6}
    assert fleet.worker.children == children
    assert "raised unexpected" not in fleet.worker.log.read_text()[said:]
    assert not _sessions() & sessions


def test_two_beats_start_a_recurring_workflow_once(fleet: Fleet) -> None:
    said = len(fleet.worker.log.read_text())
    for second in range(2):
        fleet.app.send_task(
            "workflow_engine.start",
            ["live_quick"],
            {"slot": "%Y-%m-%d"},
            headers={"workflow_engine_sent_at": f"2030-01-31T03:00:0{second}+00:00"},
        )
    # Each is received and succeeds.
    eventually(lambda: fleet.worker.log.read_text()[said:].count("workflow_engine.start[") >= 4, pause=0.1)
    (row,) = WorkflowInstance.objects.all()
    assert row.idempotency_key == "schedule:2030-01-31"
    assert ended(row) == {"completed": 1}


def test_workers_make_themselves_known_and_what_they_know(fleet: Fleet) -> None:
    assert ended(engine.start(Quick)) == {"completed": 1}
    workers = WorkflowWorker.objects.filter(kind="celery")
    assert {worker.pid for worker in workers} <= fleet.worker.children
    assert all("live_quick:1" in worker.knows for worker in workers)
    eventually(lambda: WorkflowWorker.objects.filter(kind="tick").exists(), pause=0.1)


def _sessions() -> set[int]:
    """Those of the other processes in this database."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", [name])
        else:
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> connection_id()", [name]
            )
        return {row[0] for row in cursor.fetchall()}


def _end_sessions(sessions: set[int]) -> None:
    with connection.cursor() as cursor:
        for number in sorted(sessions):
            if connection.vendor == "postgresql":
                cursor.execute("SELECT pg_terminate_backend(%s)", [number])
            else:
                cursor.execute(f"KILL {number}")
