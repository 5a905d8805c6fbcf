from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from tests.admin.visiting import driven, page_of, started, text_of, the_list, url, visitor
from tests.inspection.flows import REFUSED
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance

pytestmark = pytest.mark.django_db


def shout(key: str, value: Any) -> Any:
    """A callable for REDACT."""
    return value.upper() if isinstance(value, str) else value


def break_down(key: str, value: Any) -> Any:
    raise RuntimeError("no idea")


def test_it_says_why_the_instance_is_there(viewer: Client) -> None:
    row = started(subject=("ticket", "7"), actor="anna")
    item = engine.signal(row, "weather", actor="bob")
    driven(row)
    text = text_of(viewer, page_of(row))
    for part in (
        "Parcel 2 awaiting about ticket:7",
        "Why is it here? Awaiting paid or refused at await_payment Since now (",
        "Waiting for paid or refused Until in 2 d (",
        "What happens next When it comes, answered decides. If it does not come in time, too_late decides.",
        "No worker has been seen. Start one: python manage.py workflow_worker",
        "Steps left ship, travel, arrive, give_up",
        "await_payment waiting for paid or refused ",
        "now await_payment: waits for paid or refused, for at most 2 d now pack: done, in ",
        "now started by anna All events",
        f"now weather (#{item.pk}) is kept until it is awaited. by bob",
    ):
        assert part in text, part


def test_it_offers_what_makes_sense_and_names_what_is_forbidden(superuser: Client) -> None:
    row = started()
    content = superuser.get(page_of(row)).content.decode()
    assert re.findall(r'id="wf-do-(\w+)"', content) == ["signal", "pause", "cancel"]
    assert "Possible, but not for you: Send a signal, Pause, Cancel" in text_of(
        visitor("vera", "view_workflowinstance"), page_of(row)
    )
    engine.signal(row, REFUSED)
    driven(row)
    content = superuser.get(page_of(row)).content.decode()
    assert re.findall(r'id="wf-do-(\w+)"', content) == ["retry"]


def test_errors_and_tracebacks_unfold(viewer: Client) -> None:
    row = started(context={"carrier": "busy"})
    engine.signal(row, "paid")
    driven(row)
    content = html.unescape(viewer.get(page_of(row)).content.decode())
    assert "RuntimeError: the carrier is busy (ship, attempt 1 of 2)" in content
    assert re.search(
        r"<details id=\"wf-traceback-\d+\"><summary>Traceback</summary><pre tabindex=\"0\">Traceback \(", content
    )
    assert 'raise RuntimeError("the carrier\\nis busy")' in content


def test_the_drawing_is_in_the_page_and_in_words_too(viewer: Client) -> None:
    content = viewer.get(page_of(started())).content.decode()
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="workflow-diagram" role="img"' in content
    assert "<desc>pack: done; await_payment: now here; ship; " in content
    assert '<g class="step current">' in content


def test_history_and_mailbox_lead_to_their_whole_lists(viewer: Client) -> None:
    row, other = started(), started("leave")
    engine.signal(row, "weather")
    engine.signal(other, "snow")
    content = html.unescape(viewer.get(page_of(row)).content.decode())
    events = url("workflowevent", "changelist", instance__id__exact=str(row.pk))
    signals = url("workflowsignal", "changelist", instance__id__exact=str(row.pk))
    assert f'<a href="{events}">All events</a>' in content
    assert f'<a href="{signals}">All signals</a>' in content
    assert "3 workflow events" in text_of(viewer, events)
    listed = text_of(viewer, signals)
    assert "weather" in listed
    assert "snow" not in listed


def test_it_refreshes_itself_only_while_it_is_live(viewer: Client) -> None:
    row = started()
    content = viewer.get(page_of(row)).content.decode()
    assert 'data-refresh="5"' in content
    assert "workflow_engine/refresh.js" in content
    engine.cancel(row)
    driven(row)
    content = viewer.get(page_of(row)).content.decode()
    assert 'data-refresh="0"' in content
    assert "refresh.js" not in content


def test_what_redact_names_is_masked_everywhere(viewer: Client, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": ["pin"]}
    row = started("leave", context={"Pin-Code": "4711", "deep": [{"pin": {"a": "4711"}}], "open": "seen"})
    item = engine.signal(row, "approved", {"pin": "4711", "open": "seen"})
    driven(row)
    arrival = WorkflowEvent.objects.get(instance=row, kind="step_completed", step="approve")
    for page in (page_of(row), url("workflowsignal", "change", item.pk), url("workflowevent", "change", arrival.pk)):
        content = viewer.get(page).content.decode()
        assert "4711" not in content, page
        assert "•••" in content, page
        assert "seen" in content, page


def test_a_callable_of_redact_says_what_is_shown(viewer: Client, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": [f"{__name__}.shout"]}
    row = started(context={"carrier": "busy", "weight": 3})
    engine.signal(row, "paid")
    driven(row)
    content = html.unescape(viewer.get(page_of(row)).content.decode())
    assert '"carrier": "BUSY"' in content
    assert '"weight": 3' in content
    assert "THE CARRIER" in content
    assert "the carrier" not in content
    assert "THE CARRIER" in html.unescape(viewer.get(the_list()).content.decode())


def test_a_callable_of_redact_that_fails_shows_nothing(viewer: Client, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": [f"{__name__}.break_down"]}
    content = viewer.get(page_of(started(context={"carrier": "idle"}))).content.decode()
    assert "idle" not in content
    assert "•••" in content


def test_large_data_is_cut(viewer: Client) -> None:
    row = started(context={"lines": [f"line {number}" for number in range(5000)], "text": "x" * 5000})
    content = viewer.get(page_of(row)).content.decode()
    assert "line 100&quot;" in content
    assert "line 4999" not in content
    assert re.search(r"\d+ more characters are not shown\.", content)


def test_lease_and_hold_are_told(viewer: Client) -> None:
    row = started()
    now = clock.now("default")
    WorkflowInstance.objects.update(lease_owner="box-1", due_at=now + timedelta(seconds=50), recoveries=1)
    text = text_of(viewer, page_of(row))
    assert "Lease held by box-1 The lease ends in 49 s" in text
    assert "Processes that died on it 1" in text
    WorkflowInstance.objects.update(lease_owner="", due_at=now, poll_at=now + timedelta(seconds=50))
    assert "Held by a worker, at the longest until in 49 s" in text_of(viewer, page_of(row))


def test_moments_are_told_in_the_users_zone(viewer: Client) -> None:
    row = started()
    with timezone.override("Asia/Tokyo"):
        assert " JST)" in text_of(viewer, page_of(row))


def test_an_instance_that_is_gone_leads_back_to_the_list(viewer: Client) -> None:
    response = viewer.get(url("workflowinstance", "change", "00000000-0000-7000-8000-000000000000"), follow=True)
    assert response.redirect_chain == [(the_list(), 302)]
    assert (
        b"There is no workflow instance 00000000-0000-7000-8000-000000000000. Perhaps it was pruned."
        in response.content
    )
    assert viewer.get(url("workflowinstance", "change", "no-id"), follow=True).redirect_chain == [(the_list(), 302)]


def test_a_page_asks_a_fixed_number_of_questions(
    superuser: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    row = started()
    with CaptureQueriesContext(connection) as captured:
        superuser.get(page_of(row))
    for _number in range(5):
        engine.signal(row, "weather")
        driven(row)
    with django_assert_num_queries(len(captured)):
        superuser.get(page_of(row))
    assert len(captured) <= 12


def test_what_no_code_here_knows_is_shown_all_the_same(viewer: Client) -> None:
    row = started()
    WorkflowInstance.objects.update(workflow_name="of_yore")
    text = text_of(viewer, page_of(row))
    assert "No code here can run it: of_yore version 2 is not registered." in text
