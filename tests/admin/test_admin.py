from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.inspection.flows import REFUSED
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal, WorkflowWorker

pytestmark = pytest.mark.django_db

MODELS = ("workflowinstance", "workflowevent", "workflowsignal", "workflowworker")


@pytest.fixture
def superuser() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


@pytest.fixture
def viewer() -> Client:
    """A member of staff who may look at everything."""
    user = get_user_model().objects.create_user("vera", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="workflow_engine", codename__startswith="view_")
    )
    client = Client()
    client.force_login(user)
    return client


def started(name: str = "parcel", **options: Any) -> WorkflowInstance:
    row = engine.start(name, **options)
    engine.drive(row)
    row.refresh_from_db()
    return row


@pytest.fixture
def rows() -> dict[str, Any]:
    """A row of each model."""
    row = started()
    engine.signal(row, "weather")
    engine.drive(row)
    now = clock.now("default")
    worker = WorkflowWorker.objects.create(kind="worker", host="box", pid=1, started_at=now, seen_at=now)
    return {
        "workflowinstance": row,
        "workflowevent": row.events.get(seq=1),
        "workflowsignal": row.signals.get(),
        "workflowworker": worker,
    }


def url(model: str, page: str, *arguments: object, **query: str) -> str:
    return reverse(f"admin:workflow_engine_{model}_{page}", args=arguments, query=query)


def text_of(client: Client, address: str) -> str:
    """What is read on the page: without tags, on one line."""
    response = client.get(address)
    assert response.status_code == 200
    body = re.sub(r"<(script|style).*?</\1>", "", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_looked_at(viewer: Client, rows: dict[str, Any], model: str) -> None:
    assert viewer.get(url(model, "changelist")).status_code == 200
    page = viewer.get(url(model, "change", rows[model].pk))
    assert page.status_code == 200
    assert b'name="_save"' not in page.content
    assert b"deletelink" not in page.content


@pytest.mark.parametrize("model", MODELS)
def test_nobody_adds_changes_or_deletes_anything_by_hand(superuser: Client, rows: dict[str, Any], model: str) -> None:
    row = rows[model]
    before = type(row).objects.values().get(pk=row.pk)
    assert superuser.get(url(model, "add")).status_code == 403
    assert superuser.post(url(model, "add"), {}).status_code == 403
    assert superuser.post(url(model, "change", row.pk), {"status": "failed"}).status_code == 403
    assert superuser.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    superuser.post(url(model, "changelist"), {"action": "delete_selected", "_selected_action": [str(row.pk)]})
    assert type(row).objects.values().get(pk=row.pk) == before


@pytest.mark.parametrize("model", MODELS)
def test_staff_without_the_permission_sees_nothing(rows: dict[str, Any], model: str) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create_user("nobody", is_staff=True))
    assert client.get(url(model, "changelist")).status_code == 403
    assert client.get(url(model, "change", rows[model].pk)).status_code == 403


def test_the_list_tells_where_instances_are_and_what_went_wrong(viewer: Client) -> None:
    started(subject=("ticket", "7"))
    failed = started()
    engine.signal(failed, REFUSED)
    engine.drive(failed)
    paused = started("leave")
    engine.pause(paused)
    engine.drive(paused)
    text = text_of(viewer, url("workflowinstance", "changelist"))
    assert "parcel 2 ticket:7 awaiting await_payment paid or refused" in text
    assert "parcel 2 - failed give_up - - Fail: nobody paid" in text
    assert "leave 1 - awaiting, paused approve approved" in text


def found(client: Client, **query: str) -> set[str]:
    content = client.get(url("workflowinstance", "changelist", **query)).content.decode()
    return set(re.findall(r"/workflowinstance/([0-9a-f-]{36})/change/", content))


def test_the_list_is_filtered_and_searched(viewer: Client) -> None:
    parcel = started(subject=("ticket", "7"), idempotency_key="order-7")
    leave = started("leave")
    assert found(viewer) == {str(parcel.pk), str(leave.pk)}
    assert found(viewer, workflow="leave") == {str(leave.pk)}
    assert found(viewer, status__exact="failed") == set()
    for term in (str(parcel.pk), "order-7", "ticket:7", " ticket:7 "):
        assert found(viewer, q=term) == {str(parcel.pk)}
    assert found(viewer, q=str(parcel.pk)[:4]) == {str(parcel.pk), str(leave.pk)}
    assert found(viewer, q="nothing") == set()


def test_the_page_of_an_instance_says_why_it_is_there(viewer: Client) -> None:
    row = started(subject=("ticket", "7"), actor="anna")
    item = engine.signal(row, "weather")
    engine.drive(row)
    text = text_of(viewer, url("workflowinstance", "change", row.pk))
    for part in (
        "Status awaiting paid or refused at await_payment Since now (",
        "Waits for paid or refused Until in 2 d (",
        "Next When it comes, answered decides. Next If it does not come in time, too_late decides.",
        "Steps left ship, travel, arrive, give_up",
        "1. now: started anna 2. now: pack: done, in ",
        "3. now: await_payment: waits for paid or refused, for at most 2 d all events",
        f"now: weather (#{item.pk}) is kept until it is awaited. all signals",
    ):
        assert part in text


def test_history_and_mailbox_lead_to_their_whole_lists(viewer: Client) -> None:
    row, other = started(), started("leave")
    engine.signal(row, "weather")
    engine.signal(other, "snow")
    content = html.unescape(viewer.get(url("workflowinstance", "change", row.pk)).content.decode())
    events = url("workflowevent", "changelist", instance__id__exact=str(row.pk))
    signals = url("workflowsignal", "changelist", instance__id__exact=str(row.pk))
    assert f'<a href="{events}">all events</a>' in content
    assert f'<a href="{signals}">all signals</a>' in content
    assert "3 workflow events" in text_of(viewer, events)
    listed = text_of(viewer, signals)
    assert "weather" in listed
    assert "snow" not in listed


def test_events_are_filtered_by_kind(viewer: Client, rows: dict[str, Any]) -> None:
    started = text_of(viewer, url("workflowevent", "changelist", kind="workflow_started"))
    assert re.search(r"\b1 workflow event\b", started)
    assert "0 workflow events" in text_of(viewer, url("workflowevent", "changelist", kind="workflow_failed"))


def test_stored_markup_is_shown_as_text(superuser: Client) -> None:
    evil = "<script>alert(1)</script>"
    row = started(subject=(evil, evil), idempotency_key=evil, context={"a": evil}, actor=evil)
    WorkflowInstance.objects.update(error={"type": evil, "message": evil, "step": evil, "attempt": 1})
    item = engine.signal(row, evil, evil, actor=evil)
    engine.drive(row)
    pages = [
        url("workflowinstance", "changelist"),
        url("workflowinstance", "change", row.pk),
        url("workflowevent", "changelist"),
        url("workflowevent", "change", WorkflowEvent.objects.get(seq=1).pk),
        url("workflowsignal", "changelist"),
        url("workflowsignal", "change", WorkflowSignal.objects.get(pk=item.pk).pk),
    ]
    for page in pages:
        content = superuser.get(page).content.decode()
        assert evil not in content, page
        assert "&lt;script&gt;" in content, page


@pytest.mark.parametrize("model", MODELS)
def test_the_number_of_queries_does_not_grow_with_the_rows(viewer: Client, rows: dict[str, Any], model: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            viewer.get(url(model, "changelist"))
        return len(captured)

    few = queries()
    for number in range(5):
        row = started("trip")
        engine.signal(row, "weather")
        now = clock.now("default")
        WorkflowWorker.objects.create(kind="tick", host="box", pid=number, started_at=now, seen_at=now)
    assert queries() == few
