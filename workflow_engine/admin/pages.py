"""Pages about all instances together: the overview and the definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from workflow_engine.admin.pieces import instance_url, moment, rendered, status_of, subject_of
from workflow_engine.domain.statuses import Status
from workflow_engine.inspection import doctor
from workflow_engine.inspection.definitions import definitions
from workflow_engine.inspection.overview import Counts, overview
from workflow_engine.inspection.wording import either
from workflow_engine.models.instances import STATUS_LABELS

if TYPE_CHECKING:
    from workflow_engine.admin.instances import InstanceAdmin


def overview_page(model_admin: InstanceAdmin, request: HttpRequest) -> HttpResponse:
    """How all the workflows are doing."""
    told, site = overview(model_admin.database()), model_admin.admin_site
    oldest = [
        {
            "url": instance_url(row.pk, site),
            "title": model_admin.title_of(row),
            "status": status_of(row),
            "subject": subject_of(row, site),
            "step": row.current_step,
            "names": either(row.awaiting_signals),
            "since": moment(row.status_changed_at, told.now),
            "deadline": moment(row.deadline_at, told.now),
        }
        for row in told.oldest
    ]
    return _page(
        model_admin,
        request,
        "overview",
        {
            "title": _("Overview"),
            "told": told,
            "statuses": list(STATUS_LABELS.values()),
            "counts": [(counts, _cells(model_admin, counts)) for counts in told.counts],
            "oldest": oldest,
            "failures": [
                (line, _list_of(model_admin, workflow=line.workflow, step=line.step)) for line in told.failures
            ],
            "workers": [(worker, moment(worker.seen_at, told.now)) for worker in told.workers],
            "last_tick": moment(told.last_tick, told.now) if told.last_tick else "",
        },
    )


def definitions_page(model_admin: InstanceAdmin, request: HttpRequest) -> HttpResponse:
    """What this code can run, and what it can't."""
    using, site = model_admin.database(), model_admin.admin_site
    return _page(
        model_admin,
        request,
        "definitions",
        {
            "title": _("Definitions"),
            "definitions": definitions(using),
            "stranded": [(found, instance_url(found.example, site)) for found in doctor.stranded(using)],
        },
    )


def _page(model_admin: InstanceAdmin, request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    shared = {**model_admin.admin_site.each_context(request), "opts": model_admin.opts, "media": model_admin.media}
    return rendered(model_admin.admin_site, request, f"admin/workflow_engine/{name}.html", {**shared, **context})


def _cells(model_admin: InstanceAdmin, counts: Counts) -> list[tuple[int, str]]:
    """How many there are in each status, and the list of those."""
    return [
        (counts.by_status[status], _list_of(model_admin, workflow=counts.name, status=status.value))
        for status in Status
    ]


def _list_of(model_admin: InstanceAdmin, **query: str) -> str:
    name = "admin:workflow_engine_workflowinstance_changelist"
    return reverse(name, query=query, current_app=model_admin.admin_site.name)
