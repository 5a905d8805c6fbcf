"""Who visits the admin, and what they read there."""

from __future__ import annotations

import html
import re
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from workflow_engine import engine
from workflow_engine.models import WorkflowInstance

MODELS = ("workflowinstance", "workflowevent", "workflowsignal", "workflowworker")
VIEWS = tuple(f"view_{model}" for model in MODELS)


def visitor(name: str, *codenames: str, is_superuser: bool = False, checks_csrf: bool = False) -> Client:
    """A member of staff with these permissions, logged in."""
    user = get_user_model().objects.create_user(name, is_staff=True, is_superuser=is_superuser)
    permissions = Permission.objects.filter(content_type__app_label="workflow_engine", codename__in=codenames)
    assert len(permissions) == len(codenames)
    user.user_permissions.set(permissions)
    client = Client(enforce_csrf_checks=checks_csrf)
    client.force_login(user)
    return client


def started(name: str = "parcel", **options: Any) -> WorkflowInstance:
    """An instance that has come as far as it comes by itself."""
    return driven(engine.start(name, **options))


def driven(row: WorkflowInstance) -> WorkflowInstance:
    """The instance after what it can do now."""
    engine.drive(row)
    row.refresh_from_db()
    return row


def url(model: str, page: str, *arguments: object, **query: str) -> str:
    return reverse(f"admin:workflow_engine_{model}_{page}", args=arguments, query=query)


def the_list(**query: str) -> str:
    return url("workflowinstance", "changelist", **query)


def page_of(row: WorkflowInstance) -> str:
    return url("workflowinstance", "change", row.pk)


def act_on(row: WorkflowInstance, verb: str) -> str:
    return url("workflowinstance", "act", row.pk, verb)


def read(content: bytes) -> str:
    """What is read on a page: without tags, on one line."""
    body = re.sub(r"<(script|style).*?</\1>", "", content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def text_of(client: Client, address: str) -> str:
    """What is read at that address."""
    response = client.get(address)
    assert response.status_code == 200
    return read(response.content)
