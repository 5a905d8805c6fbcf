"""Small pieces of HTML that lists and pages share. What is stored is always escaped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from workflow_engine.inspection.times import exact, relative
from workflow_engine.inspection.wording import one_line
from workflow_engine.models import WorkflowInstance

NOTHING = "-"


def pill(status: str, label: object) -> SafeString:
    """A status as a word in a frame; its colour and its sign only repeat what the word says."""
    return format_html('<span class="wf-pill wf-{}">{}</span>', status.replace("_", "-"), label)


def status_of(row: WorkflowInstance) -> SafeString:
    """The pill of its status, and another one while it is paused."""
    pills = [(pill(row.status, row.get_status_display()),)]
    if row.paused and not row.is_terminal:
        pills.append((pill("paused", _("paused")),))
    return format_html_join(" ", "{}", pills)


def moment(at: datetime | None, now: datetime) -> SafeString | str:
    """How long ago or ahead, with the exact time for who asks; a dash for none."""
    if at is None:
        return NOTHING
    told = {"iso": at.isoformat(), "exact": exact(at), "relative": relative(at, now)}
    return format_html('<time datetime="{iso}" title="{exact}">{relative}</time>', **told)


def subject_of(row: WorkflowInstance, site: AdminSite) -> SafeString | str:
    """What it is about, linked to its own page in this admin where there is one. Asks no database."""
    reference = row.subject_ref
    if reference is None:
        return NOTHING
    text = one_line(":".join(reference))
    url = _page_of(reference, site)
    return format_html('<a href="{}">{}</a>', url, text) if url else text


def _page_of(reference: tuple[str, str], site: AdminSite) -> str:
    app_label, _dot, model_name = reference[0].partition(".")
    model: type[Model] | None = apps.all_models.get(app_label, {}).get(model_name)
    if model is None or not site.is_registered(model):
        return ""
    try:
        return reverse(f"admin:{app_label}_{model_name}_change", args=(reference[1],), current_app=site.name)
    except NoReverseMatch:
        return ""


def instance_url(instance_id: object, site: AdminSite) -> str:
    """The page of an instance, made of the id alone."""
    return reverse("admin:workflow_engine_workflowinstance_change", args=(instance_id,), current_app=site.name)


def rendered(site: AdminSite, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
    """A page of this very admin site: its links stay there, should there be several sites."""
    vars(request)["current_app"] = site.name
    return TemplateResponse(request, template, context)
