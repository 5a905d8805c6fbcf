from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.inspection.flows import REFUSED
from workflow_engine import clock, engine
from workflow_engine.inspection.capped import AtLeast, count_of
from workflow_engine.inspection.definitions import definitions
from workflow_engine.inspection.doctor import Stranded, stranded
from workflow_engine.inspection.overview import Failures, names, overview
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain

pytestmark = pytest.mark.django_db


def started(name: str = "parcel", **options: Any) -> WorkflowInstance:
    row = engine.start(name, **options)
    drain()
    return row


def test_a_count_is_given_up_where_it_gets_long() -> None:
    for _number in range(3):
        started("leave")
    rows = WorkflowInstance.objects.all()
    assert (count_of(rows, 3), str(count_of(rows, 3))) == (3, "3")
    assert (count_of(rows, 2), str(count_of(rows, 2))) == (2, "2+")
    assert str(AtLeast(10_000)) == "10,000+"


def test_workflows_that_only_rows_know_are_found_without_reading_all_rows() -> None:
    for name in ("of_yore", "of_yore", "zebra"):
        row = started()
        WorkflowInstance.objects.filter(pk=row.pk).update(workflow_name=name)
    with CaptureQueriesContext(connection) as captured:
        assert names("default") == ["leave", "of_yore", "parcel", "trip", "zebra"]
    assert len(captured) == 3


def test_failures_are_counted_by_step_for_a_day() -> None:
    started("trip", context={"hotel": "silent"})
    for _number in range(4):
        clock.shift(timedelta(minutes=5))
        drain()
    row = started()
    engine.signal(row, REFUSED)
    drain()
    told = overview("default")
    assert told.failures == [Failures("trip", "hotel", 3, 1), Failures("parcel", "give_up", 1, 1)]
    assert not told.failures_are_capped
    clock.shift(timedelta(hours=25))
    assert overview("default").failures == []


def test_who_has_waited_the_longest_comes_first() -> None:
    first = started("leave")
    clock.shift(timedelta(hours=1))
    second = started()
    assert [row.pk for row in overview("default").oldest] == [first.pk, second.pk]


def test_instances_that_no_code_here_can_run_are_told() -> None:
    rows = [started() for _number in range(3)]
    lost, newer, ended = (WorkflowInstance.objects.filter(pk=row.pk) for row in rows)
    lost.update(workflow_name="of_yore")
    newer.update(definition_version=9)  # which has all the steps that are left
    engine.cancel(rows[2])
    drain()
    ended.update(workflow_name="of_yore")
    assert stranded("default") == [Stranded("of_yore", 2, 1, str(rows[0].pk))]


def test_definitions_come_with_their_rules() -> None:
    started()
    leave, parcel, trip = definitions("default")
    assert [(found.name, found.version, found.live) for found in (leave, parcel, trip)] == [
        ("leave", 1, 0),
        ("parcel", 2, 1),
        ("trip", 1, 0),
    ]
    ship = next(step for step in parcel.steps if step.key == "ship")
    assert (ship.kind, ship.retry, ship.timeout, ship.goes_to, ship.undo) == (
        "step",
        "2 attempts, 3 h apart",
        "",
        "",
        "",
    )
    assert trip.steps[0].undo == "cancel_flight"
    assert parcel.drawing.startswith("<svg ")
