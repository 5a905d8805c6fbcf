from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.admin.visiting import MODELS, page_of, started, text_of, the_list, url, visitor
from workflow_engine import engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal

pytestmark = pytest.mark.django_db

EVIL = "<script>alert(1)</script>"
INLINE = re.compile(
    r"<style|\sstyle=|<script(?![^>]*\ssrc=)(?![^>]*application/json)[^>]*>|<[^>]+\son[a-z]+\s*=|javascript:",
    re.IGNORECASE,
)


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
    client = visitor("nobody")
    assert client.get(url(model, "changelist")).status_code == 403
    assert client.get(url(model, "change", rows[model].pk)).status_code == 403


def test_events_are_filtered_by_kind(viewer: Client, rows: dict[str, Any]) -> None:
    started = text_of(viewer, url("workflowevent", "changelist", kind="workflow_started"))
    assert re.search(r"\b1 workflow event\b", started)
    assert "0 workflow events" in text_of(viewer, url("workflowevent", "changelist", kind="workflow_failed"))


def every_page(row: WorkflowInstance) -> list[str]:
    """The addresses of all there is to see of it."""
    signal = WorkflowSignal.objects.filter(instance=row).latest("pk")
    event = WorkflowEvent.objects.get(instance=row, seq=1)
    return [
        the_list(),
        page_of(row),
        *(url("workflowinstance", "act", row.pk, verb) for verb in ("signal", "cancel", "pause", "retry", "advance")),
        url("workflowinstance", "overview"),
        url("workflowinstance", "definitions"),
        url("workflowevent", "changelist"),
        url("workflowevent", "change", event.pk),
        url("workflowsignal", "changelist"),
        url("workflowsignal", "change", signal.pk),
    ]


def test_stored_markup_is_shown_as_text(superuser: Client) -> None:
    row = started(subject=(EVIL, EVIL), idempotency_key=EVIL, context={"a": EVIL, EVIL: 1}, actor=EVIL, tenant=EVIL)
    engine.signal(row, EVIL, {EVIL: EVIL}, actor=EVIL)
    engine.drive(row)
    error = {"type": EVIL, "message": EVIL, "step": EVIL, "attempt": 1}
    WorkflowInstance.objects.update(
        error=error, result=EVIL, current_step=EVIL, awaiting_signals=[EVIL], lease_owner=EVIL, queue=EVIL
    )
    WorkflowEvent.objects.filter(seq=2).update(step=EVIL, data={"error": error, "traceback": EVIL}, kind="step_failed")
    WorkflowSignal.objects.update(reason=EVIL)
    for page in every_page(row):
        content = superuser.get(page).content.decode()
        assert EVIL not in content, page
    for page in (the_list(), page_of(row), url("workflowinstance", "act", row.pk, "signal")):
        assert "&lt;script&gt;" in superuser.get(page).content.decode(), page


def test_a_workflow_with_an_evil_name_is_shown_as_text_too(superuser: Client) -> None:
    row = started()
    engine.signal(row, "weather")
    WorkflowInstance.objects.update(workflow_name=EVIL, step_sequence=[EVIL], current_step=EVIL)
    for page in every_page(row):
        assert EVIL not in superuser.get(page).content.decode(), page


def test_no_page_has_a_script_or_a_style_of_its_own(superuser: Client, rows: dict[str, Any]) -> None:
    row = rows["workflowinstance"]
    for page in every_page(row):
        response = superuser.get(page)
        assert response.status_code == 200
        assert INLINE.search(response.content.decode()) is None, page
    many = superuser.post(the_list(), {"action": "cancel", "_selected_action": [str(row.pk)]})
    assert INLINE.search(many.content.decode()) is None


def test_looking_changes_nothing(superuser: Client, rows: dict[str, Any]) -> None:
    row = rows["workflowinstance"]

    def everything() -> list[Any]:
        return [
            list(model.objects.order_by("pk").values()) for model in (WorkflowInstance, WorkflowEvent, WorkflowSignal)
        ]

    before = everything()
    for page in every_page(row):
        superuser.get(page)
        superuser.get(page, {"confirmed": "yes", "name": "=paid", "action": "cancel", "undo": "yes"})
        superuser.head(page)
    assert everything() == before
