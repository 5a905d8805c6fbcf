from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from tests.management.calling import say, started
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def stranded(*arguments: str) -> str:
    """What the command prints while it finds something."""
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("workflow_doctor", *arguments, stdout=out)
    assert caught.value.returncode == 2
    assert str(caught.value) == (
        "This code can't run the live instances of 1 version: they wait for workers that can. Keep their classes, with"
        " all the steps that are still to come, until the last of them has ended."
    )
    return out.getvalue()


@pytest.fixture
def retired() -> WorkflowInstance:
    """An instance whose class is gone; others are not."""
    row = engine.start("trip")
    WorkflowInstance.objects.update(workflow_name="retired", definition_version=7)
    started("leave")
    return row


def test_code_that_can_run_everything_says_so() -> None:
    started("leave")
    assert say("workflow_doctor").lines == ["This code can run every live instance."]
    assert say("workflow_doctor", "--json").json == []


def test_what_no_code_here_can_run_is_listed_with_an_example(retired: WorkflowInstance) -> None:
    assert stranded().splitlines() == ["workflow  version  live  for example", f"retired   7        1     {retired.pk}"]


def test_json_has_the_same(retired: WorkflowInstance) -> None:
    assert json.loads(stranded("--json")) == [
        {"workflow": "retired", "version": 7, "live": 1, "is_at_least": False, "example": str(retired.pk)}
    ]
