from __future__ import annotations

import pytest

from tests.management.calling import say, started
from workflow_engine import engine
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def test_every_version_is_listed_with_its_steps_and_live_instances() -> None:
    started("parcel")
    engine.start("parcel")
    WorkflowInstance.objects.filter(pk=engine.start("trip").pk).update(workflow_name="retired", definition_version=7)
    assert say("workflow_list").lines == [
        "workflow  version  live  steps",
        "leave     1        0     approve",
        "parcel    2        2     pack, await_payment, ship, travel, arrive, give_up",
        "retired   7        1     not in this code",
        "trip      1        0     flight, hotel",
    ]


def test_json_has_the_same() -> None:
    started("leave")
    assert say("workflow_list", "--json").json[0] == {
        "workflow": "leave",
        "version": 1,
        "label": "Leave",
        "registered": True,
        "steps": ["approve"],
        "live": {"awaiting": 1},
    }


def test_a_project_without_workflows_is_told_where_they_go() -> None:
    with registry.isolated():
        registry._classes = {}
        said = say("workflow_list")
    assert (said.out, said.err) == (
        "",
        "No workflow is registered. Write one in the 'workflows' module of an installed app.\n",
    )
