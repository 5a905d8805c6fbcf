"""Run by test_own_user_model.py in a pytest of its own, with the settings beside this file."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from tests.traps.own_user.models import Member
from workflow_engine import Await, Context, Workflow, engine, step
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.testing import drain, reload

pytestmark = pytest.mark.django_db(transaction=True)


class Welcome(Workflow):
    name = "welcome"

    @step
    def greet(self, ctx: Context) -> Await:
        ctx.subject.nickname = "greeted"
        ctx.subject.save()
        return Await("answered")


@pytest.fixture
def member() -> Member:
    made: Member = Member.objects.create(email="zoë@example.com")
    return made


def test_the_user_model_is_swapped_and_the_migrations_need_no_change() -> None:
    assert get_user_model()._meta.label == "own_user.Member"
    call_command("makemigrations", "workflow_engine", check=True, dry_run=True, verbosity=0)
    assert not [
        field
        for model in apps.get_app_config("workflow_engine").get_models()
        for field in model._meta.get_fields()
        if field.related_model is Member
    ]


def test_a_user_is_a_subject_and_an_actor(member: Member) -> None:
    instance = engine.start(Welcome, subject=member, actor=member)
    drain()
    assert WorkflowInstance.objects.live().for_subject(member).awaiting("answered").get() == instance
    assert (instance.subject_type, instance.subject_id) == ("own_user.member", str(member.pk))
    member.refresh_from_db()
    assert member.nickname == "greeted"
    engine.signal_subject(member, "answered", actor=member)
    drain()
    assert reload(instance).status == "completed"
    assert [event.actor for event in instance.events.order_by("seq")] == [
        "zoë@example.com",
        "",
        *["zoë@example.com"] * 3,
    ]
    assert WorkflowSignal.objects.get().actor == "zoë@example.com"


def test_the_admin_shows_the_instance_to_that_user(member: Member) -> None:
    instance = engine.start(Welcome, subject=member)
    drain()
    client: Any = Client()
    client.force_login(member)
    for page in (
        reverse("admin:workflow_engine_workflowinstance_changelist"),
        reverse("admin:workflow_engine_workflowinstance_change", args=[instance.pk]),
    ):
        assert client.get(page).status_code == 200
