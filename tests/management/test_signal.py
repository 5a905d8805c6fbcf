from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.management.calling import refused, say, started
from workflow_engine import engine
from workflow_engine.models import WorkflowSignal

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


def last() -> WorkflowSignal:
    return WorkflowSignal.objects.latest("pk")


def test_a_signal_is_taken_at_once_and_the_result_is_shown() -> None:
    row = started()
    said = say("workflow_signal", row.pk, "paid", "--data", '{"id": "pay_1"}', "--key", "event-1")
    assert said.lines == [
        f"paid (#{last().pk}) was taken by await_payment.",
        f"parcel {row.pk}: sleeping at travel, in 5 d",
    ]
    assert (last().data, last().actor, last().idempotency_key) == ({"id": "pay_1"}, "anna (shell)", "event-1")


def test_a_signal_can_be_left_to_a_worker() -> None:
    row = started()
    said = say("workflow_signal", row.pk, "paid", "--no-advance", "--actor", "bob")
    assert said.lines == [
        f"paid (#{last().pk}) waits to be looked at.",
        f"parcel {row.pk}: awaiting paid or refused at await_payment, in 2 d",
    ]
    assert last().actor == "bob"


def test_a_signal_that_nothing_awaits_is_kept_and_a_near_name_is_offered() -> None:
    row = started()
    said = say("workflow_signal", row.pk, "payd")
    assert said.lines[0] == f"payd (#{last().pk}) is kept until it is awaited."
    assert said.err == "Did you mean 'paid'?\n"
    assert say("workflow_signal", row.pk, "weather").err == ""


def test_a_subject_means_all_of_its_live_instances() -> None:
    ended = started("leave", subject=("ticket", "7"))
    engine.cancel(ended)
    engine.drive(ended)
    first, second = (started("leave", subject=("ticket", "7")) for _ in range(2))
    said = say("workflow_signal", "ticket:7", "approved")
    assert said.lines[1::2] == [f"leave {first.pk}: completed", f"leave {second.pk}: completed"]
    assert refused("workflow_signal", "ticket:7", "approved") == (
        "No live workflow instance for ticket:7, so the signal 'approved' was not stored. Answer the sender with an"
        " error so that it tries again, or start the workflow first."
    )


def test_a_key_that_looks_like_a_subject_means_its_instance() -> None:
    row = started("leave", idempotency_key="order:7")
    assert say("workflow_signal", "order:7", "approved").lines[1] == f"leave {row.pk}: completed"


def test_json_has_the_signals_and_their_instances() -> None:
    row = started("leave")
    said = say("workflow_signal", row.pk, "approved", "--json")
    ((entry),) = said.json
    assert (entry["signal"]["id"], entry["signal"]["state"]) == (last().pk, "consumed")
    assert (entry["instance"]["id"], entry["instance"]["status"]) == (str(row.pk), "completed")


def test_a_finished_instance_takes_no_signal() -> None:
    row = started("leave")
    say("workflow_signal", row.pk, "approved")
    assert refused("workflow_signal", row.pk, "approved") == (
        f"Can't signal workflow instance {row.pk}: it is completed. It has ended and can't be changed any more."
    )


def test_an_unknown_instance_is_refused() -> None:
    assert refused("workflow_signal", "deadbeef", "paid") == (
        "No workflow instance 'deadbeef' in database 'default'. Give an id, the beginning of one (4 or more hex"
        " digits), an idempotency key, or a subject such as shop.order:42."
    )


def test_wrong_data_is_refused() -> None:
    row = started()
    assert refused("workflow_signal", row.pk, "paid", "--data", "yes") == (
        "--data is not JSON: Expecting value: line 1 column 1 (char 0). Write it like '{\"a\": 1}', or give @file or -"
        " for standard input."
    )
    assert refused("workflow_signal", row.pk, "p" * 201).startswith(
        "signal name: must be a text of 1 to 200 characters, not 'ppp"
    )


def test_strict_mode_refuses_what_is_not_awaited(settings: Settings) -> None:
    row = started("leave")
    settings.WORKFLOW_ENGINE = {"SIGNALS_BUFFER_EARLY": False}
    assert refused("workflow_signal", row.pk, "paid") == (
        f"Workflow instance {row.pk} does not await 'paid' (it awaits approved) and"
        " WORKFLOW_ENGINE['SIGNALS_BUFFER_EARLY'] is False. Send it once it is awaited."
    )
