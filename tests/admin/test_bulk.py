"""Many instances are moved at once, from the list."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin.visiting import VIEWS, driven, read, started, the_list, visitor
from tests.inspection.flows import REFUSED
from workflow_engine import engine
from workflow_engine.admin import bulk
from workflow_engine.admin.instances import InstanceAdmin
from workflow_engine.admin.verbs import VERBS, Verb
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def chosen(verb: str, *rows: WorkflowInstance, **form: str) -> dict[str, Any]:
    return {"action": verb, "_selected_action": [str(row.pk) for row in rows], **form}


def confirmed(verb: str, *rows: WorkflowInstance, **form: str) -> dict[str, Any]:
    return chosen(verb, *rows, **{"confirmed": "yes", "asked_for": str(len(rows)), **form})


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def failed() -> WorkflowInstance:
    row = started()
    engine.signal(row, REFUSED)
    return driven(row)


def test_a_page_says_what_will_happen_to_how_many(superuser: Client) -> None:
    rows = [failed(), failed(), started()]
    response = superuser.post(the_list(), chosen("retry", *rows))
    text = read(response.content)
    assert "This is for 2 instances." in text
    assert "3 were chosen; it makes no sense for the others as they are now." in text
    assert "The step that failed runs again, with fresh attempts; or the undo that failed. A worker sees to it." in text
    assert "Retry (2)" in text
    assert not any(row.signals.filter(kind="retry").exists() for row in rows)


def test_confirmed_each_is_asked_and_a_worker_does_the_rest(superuser: Client) -> None:
    rows = [failed(), failed(), started()]
    response = superuser.post(the_list(), confirmed("retry", *rows, asked_for="2", reason="better now"), follow=True)
    assert said(response) == ["Retry: asked of 2 instances."]
    requests = [list(row.signals.filter(kind="retry").values_list("actor", "state")) for row in rows]
    assert requests == [[("root", "pending")], [("root", "pending")], []]


def test_all_that_match_are_asked_whatever_is_on_the_page(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InstanceAdmin, "list_per_page", 2)
    rows = [started("leave") for _ in range(5)]
    other = started()
    page = superuser.post(the_list(workflow="leave"), chosen("pause", *rows[:2], select_across="1"))
    assert "This is for 5 instances." in read(page.content)
    assert 'name="select_across" value="1"' in page.content.decode()
    form = confirmed("pause", *rows[:2], select_across="1", asked_for="5")
    response = superuser.post(the_list(workflow="leave"), form, follow=True)
    assert said(response) == ["Pause: asked of 5 instances."]
    assert not other.signals.exists()


def test_who_is_asked_about_five_does_not_move_six(superuser: Client) -> None:
    rows = [started("leave") for _ in range(2)]
    form = confirmed("pause", *rows, select_across="1", asked_for="1")
    response = superuser.post(the_list(), form)
    text = read(response.content)
    assert "There are more of them now than when you were asked. Nothing was done yet." in text
    assert "This is for 2 instances." in text
    assert not any(row.signals.exists() for row in rows)


def test_the_awaited_names_are_offered_with_how_many_wait(superuser: Client) -> None:
    rows = [started(), started(), started("leave")]
    text = read(superuser.post(the_list(), chosen("signal", *rows)).content)
    assert "paid (2 wait for it)" in text
    assert "approved (1 waits for it)" in text
    form = confirmed("signal", *rows, name="=paid", payload='{"id": 7}')
    assert said(superuser.post(the_list(), form, follow=True)) == ["Send a signal: asked of 3 instances."]
    assert [row.signals.get().data for row in rows] == [{"id": 7}] * 3


def test_a_form_that_is_wrong_is_asked_again(superuser: Client) -> None:
    row = started()
    response = superuser.post(the_list(), confirmed("signal", row, name="=paid", payload="{"))
    assert "This is not JSON" in read(response.content)
    assert not row.signals.exists()


def test_what_is_due_is_advanced_within_the_request(superuser: Client) -> None:
    row, idle = engine.start("leave"), started("leave")
    response = superuser.post(the_list(), confirmed("advance", row, idle), follow=True)
    row.refresh_from_db()
    assert row.status == "awaiting"
    assert said(response) == ["Advance now: asked of 1 instance.", "Skipped 1 instance: Nothing is due."]


def test_the_permission_is_asked_for_each(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = started("leave", tenant="mine"), started("leave", tenant="theirs")

    def only_mine(self: Any, request: Any, verb: Verb, obj: WorkflowInstance | None = None) -> bool:
        return obj is None or obj.tenant == "mine"

    monkeypatch.setattr(InstanceAdmin, "has_act_permission", only_mine)
    response = superuser.post(the_list(), confirmed("pause", mine, theirs), follow=True)
    assert said(response) == ["Pause: asked of 1 instance.", "Skipped 1 instance: You may not do that to it."]
    assert not theirs.signals.exists()


def test_the_list_stays_out_of_the_transactions_of_requests(superuser: Client) -> None:
    row = engine.start("leave")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        response = superuser.post(the_list(), confirmed("advance", row), follow=True)
    assert said(response) == ["Advance now: asked of 1 instance."]


def test_asking_more_of_them_costs_the_same_for_each(superuser: Client) -> None:
    def queries(count: int) -> int:
        rows = [started("leave") for _ in range(count)]
        with CaptureQueriesContext(connection) as captured:
            superuser.post(the_list(), confirmed("pause", *rows))
        return len(captured)

    one, two, three = queries(1), queries(2), queries(3)
    assert three - two == two - one <= 6


def test_only_what_one_may_do_is_offered() -> None:
    started()
    client = visitor("ada", *VIEWS, "retry_workflowinstance", "cancel_workflowinstance")
    content = client.get(the_list()).content.decode()
    assert [verb for verb in VERBS if f'<option value="{verb}">' in content] == ["retry", "cancel"]


def test_a_run_of_many_ends_in_time_and_says_what_is_left(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_SECONDS", -1)
    row = started("leave")
    response = superuser.post(the_list(), confirmed("pause", row), follow=True)
    assert said(response) == [
        "Pause: asked of 0 instances.",
        "1 are left: it took too long. Do it again for them.",
    ]


def test_at_most_so_many_at_a_time(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_MOST", 2)
    rows = [started("leave") for _ in range(3)]
    text = read(superuser.post(the_list(), chosen("pause", *rows)).content)
    assert "This is for 2+ instances." in text
    assert "At most 2 are done at a time, the oldest first." in text
    superuser.post(the_list(), confirmed("pause", *rows, asked_for="2"))
    assert [row.signals.exists() for row in rows] == [True, True, False]
