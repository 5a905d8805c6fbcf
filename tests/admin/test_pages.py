from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from tests.admin.visiting import driven, page_of, started, text_of, the_list, url, visitor
from tests.inspection.flows import REFUSED
from workflow_engine import clock, engine
from workflow_engine.inspection import overview
from workflow_engine.inspection.capped import count_of
from workflow_engine.models import WorkflowInstance, WorkflowWorker

pytestmark = pytest.mark.django_db

OVERVIEW, DEFINITIONS = "overview", "definitions"


@pytest.mark.parametrize("page", [OVERVIEW, DEFINITIONS])
def test_who_may_not_look_at_instances_may_not_look_at_these(page: str) -> None:
    assert visitor("nobody").get(url("workflowinstance", page)).status_code == 403
    assert Client().get(url("workflowinstance", page)).status_code == 302


def test_the_overview_tells_how_everything_is_doing(viewer: Client) -> None:
    row = started()
    failed = started()
    engine.signal(failed, REFUSED)
    driven(failed)
    clock.shift(timedelta(hours=3))
    now = clock.now("default")
    WorkflowWorker.objects.create(kind="tick", host="box", pid=7, started_at=now, seen_at=now)
    response = viewer.get(url("workflowinstance", OVERVIEW))
    text = text_of(viewer, url("workflowinstance", OVERVIEW))
    assert "Leave 0 0 0 0 0 0 0 0 0 Parcel 0 0 1 0 0 0 1 0 0 Trip 0" in text
    assert "Parcel 2 - await_payment paid or refused 3 h ago" in text
    assert "give_up parcel 1 1 Workers Last tick: now tick box:7" in text
    assert "No worker has been seen. Start one: python manage.py workflow_worker" in text
    content = response.content.decode()
    assert f'<a href="{the_list(workflow="parcel", status="failed")}">'.replace("&", "&amp;") in content
    assert page_of(row) in content


def test_its_counts_end_somewhere(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "count_of", lambda rows: count_of(rows, 2))
    for _number in range(3):
        started("leave")
    assert "Leave 0 0 2+ 0" in text_of(viewer, url("workflowinstance", OVERVIEW))


def test_the_definitions_tell_what_this_code_can_run(viewer: Client) -> None:
    started()
    text = text_of(viewer, url("workflowinstance", DEFINITIONS))
    assert "Parcel 2 parcel · 1 live Packs, is paid for, goes its way." in text
    assert "await_payment step 3 attempts, 5 s to 10 s apart give_up, ship" in text
    assert "ship step 2 attempts, 3 h apart" in text
    assert "flight step 3 attempts, 5 s to 10 s apart cancel_flight" in text
    assert "can run" not in text


def test_the_definitions_tell_of_instances_that_no_code_here_can_run(viewer: Client) -> None:
    row, carried_on = started(), started("leave")
    WorkflowInstance.objects.filter(pk=row.pk).update(workflow_name="of_yore")
    WorkflowInstance.objects.filter(pk=carried_on.pk).update(definition_version=7)
    response = viewer.get(url("workflowinstance", DEFINITIONS))
    text = text_of(viewer, url("workflowinstance", DEFINITIONS))
    assert "Live instances that no code here can run" in text
    assert "of_yore 2 : 1, the oldest one" in text
    assert "leave 7" not in text
    assert page_of(row) in response.content.decode()


def test_the_ways_to_both_are_on_the_list_and_on_the_apps_page(superuser: Client) -> None:
    for address in (the_list(), "/admin/workflow_engine/"):
        content = superuser.get(address).content.decode()
        assert url("workflowinstance", OVERVIEW) in content
        assert url("workflowinstance", DEFINITIONS) in content
