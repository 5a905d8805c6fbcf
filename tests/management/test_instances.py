from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.inspection.flows import REFUSED
from tests.management.calling import refused, say, started
from workflow_engine import clock, engine

pytestmark = pytest.mark.django_db


def ids(*options: str) -> list[str]:
    return [line.split()[0] for line in say("workflow_instances", *options).lines[1:]]


def test_a_table_tells_which_where_since_when_and_what_for() -> None:
    waiting = started("parcel", subject=("ticket", "7"))
    failed = started("parcel")
    engine.signal(failed, REFUSED)
    engine.drive(failed)
    paused = started("leave")
    engine.pause(paused)
    engine.drive(paused)
    said = say("workflow_instances")
    columns = [re.split(r"  +", line) for line in said.lines]
    assert columns == [
        ["id", "workflow", "subject", "status", "step", "since", "waits for / error"],
        [str(paused.pk), "leave", "awaiting, paused", "approve", "now", "somebody to resume it"],
        [str(failed.pk), "parcel", "failed", "give_up", "now", "Fail: nobody paid"],
        [str(waiting.pk), "parcel", "ticket:7", "awaiting", "await_payment", "now", "paid or refused, in 2 d"],
    ]


def test_filters_narrow_down() -> None:
    waiting, leave = started("parcel", subject=("ticket", "7")), started("leave")
    assert ids("--workflow", "parcel") == [str(waiting.pk)]
    assert ids("--subject", "ticket:7") == [str(waiting.pk)]
    assert ids("--step", "approve") == [str(leave.pk)]
    assert ids("--awaiting", "paid") == [str(waiting.pk)]
    assert ids("--status", "live", "--oldest-first") == [str(waiting.pk), str(leave.pk)]
    assert ids("--stuck-longer-than", "2h") == []
    clock.shift(timedelta(hours=3))
    assert ids("--stuck-longer-than", "2h", "--workflow", "leave") == [str(leave.pk)]


def test_nothing_found_is_said_beside_the_output() -> None:
    said = say("workflow_instances", "--status", "failed")
    assert (said.out, said.err) == ("", "No instance matches.\n")


def test_more_than_the_limit_are_hinted_at() -> None:
    for _ in range(3):
        engine.start("leave")
    said = say("workflow_instances", "--limit", "2")
    assert len(said.lines) == 1 + 2
    assert said.err == "There are more than these 2; --limit shows more.\n"
    for enough in ("3", "9" * 30):
        assert say("workflow_instances", "--limit", enough).err == ""


def test_json_is_a_list() -> None:
    row = started("parcel")
    (entry,) = say("workflow_instances", "--json").json
    assert (entry["id"], entry["awaiting_signals"], entry["status"]) == (str(row.pk), ["paid", "refused"], "awaiting")
    assert "context" not in entry
    assert say("workflow_instances", "--workflow", "trip", "--json").json == []


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_number_of_queries_does_not_grow_with_the_instances(options: tuple[str, ...]) -> None:
    started("parcel")
    with CaptureQueriesContext(
        connection,
    ) as one:
        say("workflow_instances", *options)
    for _ in range(3):
        started("trip")
    with CaptureQueriesContext(connection) as several:
        say("workflow_instances", *options)
    assert len(several) == len(one) <= 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--status", "wating"), "There is no status 'wating'. Did you mean 'awaiting'?"),
        (("--limit", "-1"), "--limit is -1. Give a number from 1 on."),
        (("--subject", "order"), "'order' is no subject. Write its model and key, such as shop.order:42."),
        (
            ("--stuck-longer-than", "long"),
            "--stuck-longer-than is 'long'. Write a length of time like 90s, 30m, 2h, 7d or 1d12h.",
        ),
    ],
)
def test_a_wrong_filter_is_refused(options: tuple[str, ...], problem: str) -> None:
    assert refused("workflow_instances", *options) == problem
