"""The only clock is the database's, in UTC: no time zone of a server and no clock of a worker moves a deadline."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections

from tests.databases import ENGINE
from tests.model import invariants
from tests.traps.background import connection_settings, process
from tests.traps.skewed import define
from workflow_engine import clock, engine
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.testing import reload
from workflow_engine.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)

HALF_AN_HOUR = timedelta(minutes=30)
SKEWS = pytest.mark.parametrize("skew", [3600, -3600], ids=["an hour ahead", "an hour behind"])


def epoch() -> datetime:
    """The database's time by its own count of seconds, which no time zone can touch."""
    ask = {
        "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400",
        "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
        "mysql": "SELECT UNIX_TIMESTAMP(SYSDATE(6))",
    }
    with connection.cursor() as cursor:
        cursor.execute(ask[connection.vendor])
        return datetime.fromtimestamp(float(cursor.fetchone()[0]), tz=UTC)


ZONES: dict[str, list[dict[str, Any]]] = {
    "sqlite": [{"TIME_ZONE": "Asia/Kolkata"}],
    "postgresql": [{"TIME_ZONE": "Asia/Kolkata"}, {"TIME_ZONE": "America/St_Johns"}],
    "mysql": [
        {"OPTIONS": {"init_command": "SET SESSION time_zone = '+05:30'"}},
        {"OPTIONS": {"init_command": "SET SESSION time_zone = '-09:30'"}},
        {"TIME_ZONE": "Asia/Kolkata", "OPTIONS": {"init_command": "SET SESSION time_zone = '-09:30'"}},
    ],
}


@pytest.fixture(params=ZONES[ENGINE], ids=str)
def other_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    for name in ("timezone", "timezone_name"):
        vars(connections["default"]).pop(name, None)  # kept from the settings before
    with connection_settings(**request.param):
        yield
        # SQLite and MariaDB keep the zone's local times: only a connection of that zone can read them.
        invariants.assert_hold(invariants.read())
        WorkflowInstance.objects.all().delete()
    for name in ("timezone", "timezone_name"):
        vars(connections["default"]).pop(name, None)


def test_a_time_zone_of_the_server_or_of_the_connection_moves_no_deadline(other_zone: None) -> None:
    second = timedelta(seconds=1)  # SQLite's clock has milliseconds, its julianday less
    before = epoch() - second
    instance = engine.start(define())
    engine.drive(instance)
    after = epoch() + second
    instance = reload(instance)
    assert instance.status == "sleeping"
    assert instance.due_at is not None
    assert before + HALF_AN_HOUR <= instance.due_at <= after + HALF_AN_HOUR
    assert instance.poll_at == instance.due_at
    assert before <= instance.created_at <= instance.status_changed_at <= after
    assert before <= clock.now("default") <= epoch() + second

    assert Worker().run(burst=True) == 0
    clock.shift(HALF_AN_HOUR)
    assert Worker().run(burst=True) == 1
    assert reload(instance).status == "awaiting"


def driven_elsewhere(skew: int) -> dict[str, str]:
    """What a worker whose clock is wrong drove, and with what answer."""
    with process("worker_with_another_clock", str(skew)) as worker:
        said, _ = worker.communicate()
    assert worker.returncode == 0
    return dict(line.split() for line in said.splitlines())


@SKEWS
def test_a_worker_with_a_wrong_clock_runs_what_is_due_and_nothing_else(skew: int) -> None:
    workflow = define()
    new, sleeping, waiting, leased = (engine.start(workflow) for _ in range(4))
    for instance in (sleeping, waiting, leased):
        engine.drive(instance)
    with clock.shifted(HALF_AN_HOUR):
        engine.drive(waiting)
    before = clock.now("default")
    WorkflowInstance.objects.filter(pk=leased.pk).update(
        status="in_progress", due_at=before + HALF_AN_HOUR, poll_at=before + HALF_AN_HOUR, lease_owner="somebody"
    )
    untouched = [WorkflowInstance.objects.filter(pk=row.pk).values().get() for row in (sleeping, waiting, leased)]

    assert driven_elsewhere(skew) == {str(new.pk): Answer.ADVANCED}

    assert [WorkflowInstance.objects.filter(pk=row["id"]).values().get() for row in untouched] == untouched
    WorkflowInstance.objects.filter(pk=leased.pk).delete()  # its lease was made up
    new = reload(new)
    assert new.status == "sleeping"
    assert new.due_at is not None
    assert before <= new.status_changed_at <= new.due_at - HALF_AN_HOUR <= clock.now("default")
    assert all(before <= event.created_at for event in WorkflowEvent.objects.filter(instance_id=new.pk, seq__gt=1))
