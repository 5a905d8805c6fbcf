from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.inspection.flows import PAID
from tests.management.calling import refused, say, started
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowInstance, WorkflowWorker

pytestmark = pytest.mark.django_db


def page(*arguments: object) -> list[str]:
    """The page without what differs from run to run."""
    out = say("workflow_show", *arguments).out
    out = re.sub(r"\(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)", "(...)", out)
    return re.sub(r"in \d+ m?s\b", "in ...", out).splitlines()


def test_a_waiting_instance_is_told_on_one_screen() -> None:
    row = started("parcel", subject=("ticket", "7"), idempotency_key="order-7", actor="anna")
    engine.signal(row, "weather", actor="bob")
    engine.drive(row)
    item = row.signals.get()
    clock.shift(timedelta(hours=6, minutes=21))
    assert page(row.pk) == [
        f"parcel 2  {row.pk}  ticket:7  order-7",
        "  Status      awaiting paid or refused at await_payment",
        "  Since       6 h 21 m ago (...)",
        "  Waits for   paid or refused",
        "  Until       in 1 d 17 h (...)",
        "  Next        When it comes, answered decides.",
        "              If it does not come in time, too_late decides.",
        "  Steps left  ship, travel, arrive, give_up",
        f"  You can     workflow_signal {row.pk} paid",
        f"              workflow_signal {row.pk} refused",
        f"              workflow_pause {row.pk}",
        f"              workflow_cancel {row.pk}",
        "No worker has been seen. Start one: python manage.py workflow_worker",
        "",
        "What happened",
        "  1  6 h 21 m ago  started                                                    by anna",
        "  2  6 h 21 m ago  pack: done, in ...",
        "  3  6 h 21 m ago  await_payment: waits for paid or refused, for at most 2 d",
        "",
        "Mailbox",
        f"  weather (#{item.pk}) is kept until it is awaited. 6 h 21 m ago",
    ]


def failed() -> WorkflowInstance:
    row = started("parcel", context={"carrier": "busy"})
    engine.signal(row, PAID, actor="stripe")
    engine.drive(row)
    clock.shift(timedelta(hours=4))
    engine.drive(row)
    return row


def test_a_failed_instance_tells_what_went_wrong_and_what_to_do() -> None:
    row = failed()
    lines = page(row.pk, "--last", "2")
    assert lines == [
        f"parcel 2  {row.pk}",
        "  Status      failed at ship",
        "  Since       now (...)",
        "  Went wrong  RuntimeError: the carrier is busy (ship, attempt 2)",
        "  Next        A retry runs ship again, with fresh attempts.",
        f"  You can     workflow_retry {row.pk}",
        "",
        "What happened",
        "  ... 6 earlier events (--all shows them)",
        "  7  now  ship: attempt 2 failed: RuntimeError: the carrier is busy, for good",
        "  8  now  failed",
    ]
    assert len(page(row.pk, "--all")) == len(lines) - 1 + 6


def test_the_whole_traceback_is_shown_on_demand() -> None:
    out = say("workflow_show", failed().pk, "--traceback").out
    assert out.count("      Traceback (most recent call last):\n") == 2
    assert '          raise RuntimeError("the carrier\\nis busy")\n' in out


def test_a_worker_that_was_seen_is_not_missed() -> None:
    row = started("leave")
    now = clock.now("default")
    WorkflowWorker.objects.create(kind="worker", host="box", pid=1, knows=["leave:1"], started_at=now, seen_at=now)
    assert "worker" not in say("workflow_show", row.pk).out


@pytest.mark.parametrize("reference", ["id", "prefix", "key", "subject"])
def test_an_instance_is_named_in_four_ways(reference: str) -> None:
    row = started("leave", subject=("ticket", "7"), idempotency_key="leave-7")
    names = {"id": row.pk, "prefix": str(row.pk)[:12], "key": "leave-7", "subject": "ticket:7"}
    assert page(names[reference])[0] == f"leave 1  {row.pk}  ticket:7  leave-7"


def test_several_matches_are_listed() -> None:
    first, second = (started("leave", subject=("ticket", "7")) for _ in range(2))
    said = say("workflow_show", "ticket:7")
    assert [line.split()[0] for line in said.lines] == ["id", str(second.pk), str(first.pk)]
    assert said.err == "2 instances match; give the id of one to see it whole.\n"
    assert [entry["id"] for entry in say("workflow_show", "ticket:7", "--json").json] == [str(second.pk), str(first.pk)]


def test_json_has_everything() -> None:
    row = started("parcel", context={"weight": 3})
    engine.signal(row, "weather")
    told = say("workflow_show", row.pk, "--json").json
    assert (told["id"], told["status"], told["input"]) == (str(row.pk), "awaiting", {"weight": 3})
    assert told["context"] == {"weight": 3, "packed": True}
    assert told["remaining_steps"] == ["ship", "travel", "arrive", "give_up"]
    assert told["waits_for"] == "paid or refused"
    assert [event["kind"] for event in told["events"]] == ["workflow_started", "step_completed", "workflow_awaiting"]
    assert [signal["name"] for signal in told["signals"]] == ["weather"]
    assert told["no_worker"] == "No worker has been seen. Start one: python manage.py workflow_worker"


def test_stored_text_cannot_steer_the_terminal() -> None:
    row = started("parcel", subject=("\x1b[2Jticket", "7\n8"), idempotency_key="\x1b]0;title\x07")
    assert page(row.pk)[0] == f"parcel 2  {row.pk}  \\x1b[2Jticket:7 8  \\x1b]0;title\\x07"


def test_the_number_of_queries_does_not_grow_with_the_history() -> None:
    row = started("leave")
    with CaptureQueriesContext(connection) as short:
        say("workflow_show", row.pk)
    for _ in range(3):
        engine.pause(row)
        engine.drive(row)
        engine.resume(row)
        engine.drive(row)
    with CaptureQueriesContext(connection) as long:
        say("workflow_show", row.pk)
    assert len(long) == len(short)


def test_an_unknown_instance_is_refused() -> None:
    assert refused("workflow_show", "nothing") == (
        "No workflow instance 'nothing' in database 'default'. Give an id, the beginning of one (4 or more hex digits),"
        " an idempotency key, or a subject such as shop.order:42."
    )
    assert refused("workflow_show", "beef", "--last", "-1") == "--last is -1. Give a number from 0 on."
