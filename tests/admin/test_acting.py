"""One instance is moved by a person, who may do exactly what their permissions say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.admin.visiting import VIEWS, act_on, driven, page_of, read, started, url, visitor
from tests.inspection.flows import REFUSED
from workflow_engine import engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal

pytestmark = pytest.mark.django_db

FORMS: dict[str, dict[str, str]] = {
    "signal": {"name": "=paid", "payload": '{"id": "pay_1"}'},
    "retry": {"reason": "the carrier is back"},
    "resume": {"reason": "all clear"},
    "advance": {},
    "pause": {"reason": "audit"},
    "cancel": {"undo": "no", "reason": "the customer called"},
}
VERBS = tuple(FORMS)


def ready_for(verb: str) -> WorkflowInstance:
    """An instance that the verb makes sense for."""
    row = engine.start("parcel") if verb == "advance" else started()
    if verb == "retry":
        engine.signal(row, REFUSED)
    if verb == "resume":
        engine.pause(row)
    if verb != "advance":
        driven(row)
    row.refresh_from_db()
    return row


def state_of_everything() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (WorkflowInstance, WorkflowEvent, WorkflowSignal)]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("permission", ["", *VERBS])
def test_each_permission_allows_its_own_action_and_no_other(permission: str, verb: str) -> None:
    row = ready_for(verb)
    before = state_of_everything()
    client = visitor("ada", *VIEWS, *([f"{permission}_workflowinstance"] if permission else []))
    many = {"action": verb, "confirmed": "yes", "asked_for": "1", "_selected_action": [str(row.pk)], **FORMS[verb]}
    if permission == verb:
        assert client.get(act_on(row, verb)).status_code == 200
        assert client.post(act_on(row, verb), FORMS[verb]).status_code == 302
        assert state_of_everything() != before
        return
    assert client.get(act_on(row, verb)).status_code == 403
    assert client.post(act_on(row, verb), FORMS[verb]).status_code == 403
    client.post(url("workflowinstance", "changelist"), many)
    assert state_of_everything() == before


@pytest.mark.parametrize("verb", VERBS)
def test_nobody_else_gets_anywhere(verb: str) -> None:
    row = ready_for(verb)
    before = state_of_everything()
    many = {"action": verb, "confirmed": "yes", "asked_for": "1", "_selected_action": [str(row.pk)], **FORMS[verb]}
    anonymous = Client()
    blind = visitor("blind", f"{verb}_workflowinstance")
    for client in (anonymous, blind):
        for address, data in ((act_on(row, verb), FORMS[verb]), (url("workflowinstance", "changelist"), many)):
            assert client.post(address, data).status_code in {302, 403}
    assert anonymous.post(act_on(row, verb)).headers["Location"].startswith("/admin/login/")
    assert state_of_everything() == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_superuser_may_do_everything_and_a_get_does_nothing(superuser: Client, verb: str) -> None:
    row = ready_for(verb)
    before = state_of_everything()
    assert superuser.get(act_on(row, verb), FORMS[verb]).status_code == 200
    assert state_of_everything() == before
    superuser.post(act_on(row, verb), FORMS[verb])
    assert state_of_everything() != before


@pytest.mark.parametrize("verb", VERBS)
def test_a_post_without_the_token_is_refused(verb: str) -> None:
    row = ready_for(verb)
    before = state_of_everything()
    client = visitor("ada", is_superuser=True, checks_csrf=True)
    assert client.post(act_on(row, verb), FORMS[verb]).status_code == 403
    assert state_of_everything() == before


def test_a_verb_that_does_not_exist_is_not_found(superuser: Client) -> None:
    assert superuser.post(act_on(started(), "delete")).status_code == 404


def told_after(client: Client, row: WorkflowInstance, verb: str, **form: str) -> str:
    """What the page of the instance says after the deed."""
    response = client.post(act_on(row, verb), {**FORMS[verb], **form}, follow=True)
    assert response.redirect_chain == [(page_of(row), 302)]
    row.refresh_from_db()
    [said] = [str(message) for message in response.context["messages"]]
    return said


def test_a_signal_moves_it_at_once_and_the_history_has_the_actor(superuser: Client) -> None:
    row = started()
    said = told_after(superuser, row, "signal")
    item = row.signals.get()
    assert said == f"paid (#{item.pk}) was taken by await_payment. Now: sleeping at travel."
    assert item.data == {"id": "pay_1"}
    assert row.events.get(kind="signal_received").actor == "root"


def test_a_signal_that_nobody_awaits_is_kept(superuser: Client) -> None:
    row = started()
    said = told_after(superuser, row, "signal", name="other", other="weather", payload="")
    item = row.signals.get()
    assert (item.name, item.data) == ("weather", None)
    assert said == f"weather (#{item.pk}) is kept until it is awaited. Now: awaiting paid or refused at await_payment."


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ({"payload": "{"}, "This is not JSON: Expecting property name enclosed in double quotes, line 1, column 2."),
        ({"payload": "NaN"}, "NaN is not JSON."),
        ({"payload": "[" * 40 + "]" * 40}, "nested"),
        ({"name": "other", "other": ""}, "Name the signal."),
        ({"name": "=invented"}, "Select a valid choice."),
    ],
)
def test_a_signal_is_checked_before_it_is_sent(superuser: Client, form: dict[str, str], complaint: str) -> None:
    row = started()
    response = superuser.post(act_on(row, "signal"), {**FORMS["signal"], **form})
    assert response.status_code == 200
    assert complaint in read(response.content)
    assert not row.signals.exists()


def test_the_awaited_names_are_offered(superuser: Client) -> None:
    content = superuser.get(act_on(started(), "signal")).content.decode()
    assert re.findall(r'type="radio" name="name" value="([^"]+)"', content) == ["=paid", "=refused", "other"]


def test_a_failed_one_is_retried(superuser: Client) -> None:
    row = ready_for("retry")
    text = read(superuser.get(act_on(row, "retry")).content)
    assert "It is now: failed at give_up." in text
    assert "It would run give_up again." in text
    assert told_after(superuser, row, "retry") == "Retry. Now: failed at give_up."
    retried = row.events.get(kind="workflow_retried")
    assert (retried.actor, retried.data["reason"]) == ("root", "the carrier is back")


@pytest.mark.parametrize(("undo", "end"), [("yes", ["workflow_compensating"]), ("no", [])])
def test_a_cancellation_says_what_would_be_undone(superuser: Client, undo: str, end: list[str]) -> None:
    row = started("trip")
    text = read(superuser.get(act_on(row, "cancel")).content)
    assert "It would be undone in this order: flight." in text
    assert told_after(superuser, row, "cancel", undo=undo) == "Cancel. Now: cancelled."
    kinds = row.events.values_list("kind", flat=True)
    assert [kind for kind in kinds if kind == "workflow_compensating"] == end


def test_a_cancellation_needs_an_answer_to_the_question_of_undoing(superuser: Client) -> None:
    row = started("trip")
    response = superuser.post(act_on(row, "cancel"), {"reason": "x"})
    assert response.status_code == 200
    assert not row.signals.exists()


def test_pause_and_resume(superuser: Client) -> None:
    row = started()
    assert told_after(superuser, row, "pause") == "Pause. Now: awaiting paid or refused at await_payment, paused."
    assert row.paused
    assert told_after(superuser, row, "resume") == "Resume. Now: awaiting paid or refused at await_payment."
    assert not row.paused


def test_what_is_due_is_advanced_now(superuser: Client) -> None:
    row = ready_for("advance")
    said = told_after(superuser, row, "advance")
    assert said == "Advance now. Now: awaiting paid or refused at await_payment."
    assert told_after(superuser, row, "advance") == "Nothing is due."


def test_what_makes_no_sense_is_refused_with_the_reason(superuser: Client) -> None:
    row = started()
    text = read(superuser.get(act_on(row, "retry")).content)
    assert "Only a failed instance can be retried." in text
    assert b"wf-confirm" not in superuser.get(act_on(row, "retry")).content
    assert told_after(superuser, row, "retry") == "Only a failed instance can be retried."
    assert not row.signals.exists()


def test_the_view_stays_out_of_the_transactions_of_requests(superuser: Client) -> None:
    row = started()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        said = told_after(superuser, row, "signal")
    assert said.endswith("Now: sleeping at travel.")
