from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from example_project.shop.models import Order
from tests.admin.visiting import MODELS, driven, started, text_of, the_list, url
from tests.inspection.flows import REFUSED
from workflow_engine import clock, engine
from workflow_engine.admin import readonly
from workflow_engine.inspection import capped
from workflow_engine.models import WorkflowInstance, WorkflowWorker

pytestmark = pytest.mark.django_db


def found(client: Client, **query: str) -> set[str]:
    content = client.get(the_list(**query)).content.decode()
    return set(re.findall(r"/workflowinstance/([0-9a-f-]{36})/change/", content))


def test_it_tells_where_instances_are_and_what_went_wrong(viewer: Client) -> None:
    waiting = started(subject=("ticket", "7"))
    failed = started()
    engine.signal(failed, REFUSED)
    driven(failed)
    paused = started("leave")
    engine.pause(paused)
    driven(paused)
    text = text_of(viewer, the_list())
    assert (
        f"awaiting parcel 2 {str(waiting.pk)[:13]} ticket:7 await_payment paid or refused since now in 2 d 0 -" in text
    )
    assert f"failed parcel 2 {str(failed.pk)[:13]} - give_up ended now - 1 Fail: nobody paid" in text
    assert f"awaiting paused leave 1 {str(paused.pk)[:13]} - approve somebody to resume it since now - 0 -" in text


def test_a_status_is_a_word_in_a_frame(viewer: Client) -> None:
    started()
    assert b'<span class="wf-pill wf-awaiting">awaiting</span>' in viewer.get(the_list()).content


def test_a_subject_leads_to_its_own_page_where_there_is_one(viewer: Client) -> None:
    started(subject=(Order._meta.label_lower, "7"))
    started(subject=("ticket", "7"))
    content = viewer.get(the_list()).content.decode()
    assert '<a href="/admin/shop/order/7/change/">shop.order:7</a>' in content
    assert '<td class="field-subject">ticket:7</td>' in content


def test_it_is_searched_by_id_beginning_key_and_subject(viewer: Client) -> None:
    parcel = started(subject=("ticket", "7"), idempotency_key="order-7")
    leave = started("leave")
    assert found(viewer) == {str(parcel.pk), str(leave.pk)}
    for term in (str(parcel.pk), "order-7", "ticket:7", " ticket:7 "):
        assert found(viewer, q=term) == {str(parcel.pk)}
    assert found(viewer, q=str(parcel.pk)[:4]) == {str(parcel.pk), str(leave.pk)}
    assert found(viewer, q="nothing") == set()


def test_it_is_filtered_by_what_people_know(viewer: Client) -> None:
    parcel, leave = started(tenant="acme"), started("leave")
    parcel_id, leave_id = {str(parcel.pk)}, {str(leave.pk)}
    assert found(viewer, workflow="leave") == leave_id
    assert found(viewer, status="live") == parcel_id | leave_id
    assert found(viewer, status="failed") == set()
    assert found(viewer, step="approve") == leave_id
    assert found(viewer, awaits="refused") == parcel_id
    assert found(viewer, tenant="acme") == parcel_id
    assert found(viewer, tenant="acme", workflow="leave") == set()
    assert found(viewer, older="1h") == set()
    clock.shift(timedelta(hours=2))
    assert found(viewer, older="1h") == parcel_id | leave_id
    assert found(viewer, still="overdue") == set()
    clock.shift(timedelta(days=2))
    assert found(viewer, still="overdue") == parcel_id
    engine.pause(leave)
    driven(leave)
    assert found(viewer, still="paused") == leave_id


def test_what_ended_well_is_looked_through_for_30_days(viewer: Client) -> None:
    row = started("leave", tenant="acme")
    engine.cancel(row)
    driven(row)
    assert found(viewer, tenant="acme") == set()
    assert found(viewer, tenant="acme", status="cancelled") == {str(row.pk)}
    clock.shift(timedelta(days=31))
    assert found(viewer, tenant="acme", status="cancelled") == set()
    assert found(viewer, status="cancelled") == {str(row.pk)}


def test_a_filter_to_type_into_keeps_the_others_and_suggests(viewer: Client) -> None:
    started()
    content = viewer.get(the_list(status="awaiting", awaits="paid")).content.decode()
    assert '<input type="hidden" name="status" value="awaiting">' in content
    assert '<input type="text" name="awaits" value="paid" aria-label="awaited signal"' in content
    assert '<option value="refused"></option>' in content


@pytest.mark.parametrize("model", MODELS)
def test_the_number_of_queries_does_not_grow_with_the_rows(viewer: Client, rows: dict[str, Any], model: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            viewer.get(url(model, "changelist"))
        return len(captured)

    few = queries()
    for number in range(5):
        row = started("trip", subject=(Order._meta.label_lower, str(number)))
        engine.signal(row, "weather")
        now = clock.now("default")
        WorkflowWorker.objects.create(kind="tick", host="box", pid=number, started_at=now, seen_at=now)
    assert queries() == few


def test_the_list_asks_two_things_of_the_database(superuser: Client, django_assert_num_queries: Any) -> None:
    for _number in range(3):
        started()
    with django_assert_num_queries(4):  # the session, the user, a capped count, the rows
        superuser.get(the_list(step="await_payment", status="awaiting", q=""))


def test_no_table_is_counted_as_a_whole(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capped, "CAP", 2)
    monkeypatch.setattr(readonly, "count_of", lambda rows: capped.count_of(rows, 2))
    for _number in range(4):
        started("leave")
    with CaptureQueriesContext(connection) as captured:
        text = text_of(superuser, the_list())
    assert "2+ workflow instances" in text
    counts = [query["sql"] for query in captured if "COUNT(" in query["sql"]]
    assert len(counts) == 1
    assert "LIMIT 3" in counts[0]


def test_large_columns_are_not_read_for_the_list(superuser: Client) -> None:
    started()
    with CaptureQueriesContext(connection) as captured:
        superuser.get(the_list())
    [rows] = [
        query["sql"] for query in captured if '"current_step"' in query["sql"] or "`current_step`" in query["sql"]
    ]
    table = WorkflowInstance._meta.db_table
    for column in ("input", "context", "result"):
        assert f'"{table}"."{column}"' not in rows
