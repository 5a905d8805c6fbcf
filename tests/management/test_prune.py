from __future__ import annotations

from datetime import timedelta

import pytest

from tests.inspection.flows import REFUSED
from tests.management.calling import Terminal, refused, say, started
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


@pytest.fixture
def ended() -> list[WorkflowInstance]:
    """Two that were cancelled 100 days ago; beside one that failed then, and one that still lives."""
    rows = [started("leave"), started("leave")]
    for row in rows:
        engine.cancel(row)
        engine.drive(row)
    failed = started("parcel")
    engine.signal(failed, REFUSED)
    engine.drive(failed)
    started("leave")
    clock.shift(timedelta(days=100))
    return rows


def test_what_ended_long_ago_is_deleted(ended: list[WorkflowInstance]) -> None:
    said = say("workflow_prune", "--no-input")
    assert said.lines == ["Deleted 2 instances, 6 events and 2 signals."]
    assert not WorkflowInstance.objects.filter(pk__in=[row.pk for row in ended]).exists()
    assert WorkflowInstance.objects.count() == 2


def test_a_confirmation_says_how_many(ended: list[WorkflowInstance], monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("workflow_prune", "--with-failed") == (
        "Delete 3 instances that ended more than 90 d ago? Nobody can be asked here: add --no-input."
    )
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    said = say("workflow_prune", "--with-failed", "--older-than", "30d")
    assert said.err == "Delete 3 instances that ended more than 30 d ago? [y/N]\n"
    assert said.lines[0].startswith("Deleted 3 instances, ")


def test_a_dry_run_only_counts(ended: list[WorkflowInstance]) -> None:
    assert say("workflow_prune", "--dry-run").lines == ["Would delete 2 instances that ended more than 90 d ago."]
    assert say("workflow_prune", "--dry-run", "--limit", "1", "--json").json == {"instances": 1}
    assert WorkflowInstance.objects.count() == 4


def test_nothing_to_delete_needs_no_confirmation(ended: list[WorkflowInstance]) -> None:
    assert say("workflow_prune", "--older-than", "200d").lines == ["Deleted 0 instances, 0 events and 0 signals."]


def test_a_limit_and_json(ended: list[WorkflowInstance]) -> None:
    assert say("workflow_prune", "--no-input", "--limit", "1", "--json").json == {
        "instances": 1,
        "events": 3,
        "signals": 1,
    }


def test_a_wrong_length_of_time_is_refused() -> None:
    assert refused("workflow_prune", "--older-than", "long") == (
        "--older-than is 'long'. Write a length of time like 90s, 30m, 2h, 7d or 1d12h."
    )
    assert refused("workflow_prune", "--limit", "0") == "--limit is 0. Give a number from 1 on."
