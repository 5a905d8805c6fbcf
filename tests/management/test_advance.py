from __future__ import annotations

from datetime import timedelta

import pytest

from tests.management.calling import refused, say, started
from workflow_engine import clock, engine
from workflow_engine.domain.registry import registry

pytestmark = pytest.mark.django_db


def test_one_turn_is_taken() -> None:
    row = engine.start("parcel")
    assert say("workflow_advance", row.pk).lines == [f"parcel {row.pk}: in progress at await_payment"]
    assert say("workflow_advance", row.pk).lines == [
        f"parcel {row.pk}: awaiting paid or refused at await_payment, in 2 d"
    ]


def test_it_can_go_on_until_it_waits() -> None:
    row = engine.start("parcel")
    said = say("workflow_advance", row.pk, "--drive")
    assert said.lines == [f"parcel {row.pk}: awaiting paid or refused at await_payment, in 2 d"]


def test_what_is_not_due_is_left_alone() -> None:
    row = started()
    for options in ((), ("--drive",)):
        said = say("workflow_advance", row.pk, *options)
        assert said.lines == [f"parcel {row.pk}: awaiting paid or refused at await_payment, in 2 d"]
        assert said.err == "Nothing is due.\n"
    clock.shift(timedelta(days=3))
    assert say("workflow_advance", row.pk, "--drive").lines == [f"parcel {row.pk}: failed at give_up"]


def test_json_tells_where_it_is() -> None:
    row = engine.start("leave")
    assert say("workflow_advance", row.pk, "--json").json["status"] == "awaiting"


def test_what_cannot_advance_is_refused() -> None:
    ended, paused = started("leave"), started("leave")
    engine.cancel(ended)
    engine.drive(ended)
    engine.pause(paused)
    engine.drive(paused)
    assert (
        refused("workflow_advance", ended.pk)
        == f"Can't advance workflow instance {ended.pk}: it is cancelled. It has ended."
    )
    assert refused("workflow_advance", paused.pk) == (f"It is paused. Resume it first: workflow_resume {paused.pk}")
    assert refused("workflow_advance", "beef").startswith("No workflow instance 'beef' in database 'default'. ")


def test_an_instance_whose_code_is_not_here_is_refused() -> None:
    row = engine.start("trip")
    with registry.isolated():
        del registry._classes["trip", 1]
        assert refused("workflow_advance", row.pk) == "No code here can run it: trip version 1 is not registered."


def test_several_instances_of_a_subject_are_not_advanced() -> None:
    first, second = (engine.start("leave", subject=("ticket", "7")) for _ in range(2))
    assert refused("workflow_advance", "ticket:7") == (
        f"'ticket:7' means 2 workflow instances: {second.pk} (pending), {first.pk} (pending). Give the id of one."
    )
