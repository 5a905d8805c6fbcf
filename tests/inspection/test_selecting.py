from __future__ import annotations

from datetime import timedelta

import pytest

from tests.inspection.flows import REFUSED
from workflow_engine import clock, engine
from workflow_engine.domain.decisions.requests import why_not
from workflow_engine.domain.statuses import LIVE, Status
from workflow_engine.engine import store
from workflow_engine.exceptions import UnknownWorkflowError
from workflow_engine.inspection.selecting import ACCEPTING, Selection
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> dict[str, WorkflowInstance]:
    """One of each kind, by a name that says which."""
    rows = {
        "waits": engine.start("parcel", subject=("shop.order", 1)),
        "failed": engine.start("parcel"),
        "paused": engine.start("leave"),
        "undone": engine.start("trip"),
        "cancelled": engine.start("leave"),
    }
    for row in rows.values():
        engine.drive(row)
    engine.signal(rows["failed"], REFUSED)
    engine.pause(rows["paused"])
    engine.cancel(rows["undone"])
    engine.advance(rows["undone"])
    engine.cancel(rows["cancelled"])
    for name in ("failed", "paused", "cancelled"):
        engine.drive(rows[name])
    rows["new"] = engine.start("trip")
    return rows


def names(rows: dict[str, WorkflowInstance], selection: Selection) -> set[str]:
    found = {row.pk for row in selection.rows("default")}
    return {name for name, row in rows.items() if row.pk in found}


def test_each_filter_narrows_down(rows: dict[str, WorkflowInstance]) -> None:
    assert names(rows, Selection()) == set(rows)
    assert names(rows, Selection(workflow="parcel")) == {"waits", "failed"}
    assert names(rows, Selection(statuses=frozenset({Status.FAILED, Status.PENDING}))) == {"failed", "new"}
    assert names(rows, Selection(statuses=LIVE)) == {"waits", "paused", "undone", "new"}
    assert names(rows, Selection(step="approve")) == {"paused", "cancelled"}
    assert names(rows, Selection(subject=("shop.order", "1"))) == {"waits"}
    assert names(rows, Selection(awaiting="approved")) == {"paused"}
    assert names(rows, Selection(paused=True)) == {"paused"}
    assert names(rows, Selection(workflow="parcel", awaiting="approved")) == set()


def test_stuck_is_live_not_paused_and_in_the_same_status_for_long(rows: dict[str, WorkflowInstance]) -> None:
    long = Selection(stuck_longer_than=timedelta(hours=2))
    assert names(rows, long) == set()
    clock.shift(timedelta(hours=3))
    assert names(rows, long) == {"waits", "undone", "new"}


def test_failed_since_a_moment(rows: dict[str, WorkflowInstance]) -> None:
    now = clock.now("default")
    assert names(rows, Selection(failed_since=now - timedelta(hours=1))) == {"failed"}
    assert names(rows, Selection(failed_since=now + timedelta(hours=1))) == set()


def test_a_workflow_that_nothing_has_is_a_slip_of_the_pen(rows: dict[str, WorkflowInstance]) -> None:
    with pytest.raises(UnknownWorkflowError) as caught:
        Selection(workflow="parcl").rows("default")
    assert str(caught.value) == (
        "No workflow 'parcl' is registered. Did you mean 'parcel'? Workflows are found in the 'workflows' module of"
        " installed apps."
    )


def test_a_workflow_that_only_rows_have_can_be_asked_for(rows: dict[str, WorkflowInstance]) -> None:
    WorkflowInstance.objects.filter(pk=rows["waits"].pk).update(workflow_name="retired")
    assert names(rows, Selection(workflow="retired")) == {"waits"}


@pytest.mark.parametrize("verb", ["signal", "retry", "cancel", "pause", "resume"])
def test_the_conditions_agree_with_what_the_engine_accepts(rows: dict[str, WorkflowInstance], verb: str) -> None:
    accepted = set(WorkflowInstance.objects.filter(ACCEPTING[verb]))
    assert accepted == {row for row in WorkflowInstance.objects.all() if why_not(store.state_of(row), verb) is None}
