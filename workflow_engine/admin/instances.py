"""Instances: the list that finds the stuck ones, the page that says why, and the ways to move them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partialmethod
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from workflow_engine.admin import acting, bulk, page, pages
from workflow_engine.admin.filters import (
    AgeFilter,
    AttentionFilter,
    AwaitedFilter,
    StatusFilter,
    StepFilter,
    TenantFilter,
    WorkflowFilter,
)
from workflow_engine.admin.pieces import NOTHING, moment, rendered, status_of, subject_of
from workflow_engine.admin.readonly import ReadOnlyAdmin
from workflow_engine.admin.verbs import VERBS, Verb
from workflow_engine.clock import DatabaseNow
from workflow_engine.domain.registry import registry
from workflow_engine.inspection import standing
from workflow_engine.inspection.finding import meant_by
from workflow_engine.inspection.redaction import redacted_error
from workflow_engine.inspection.wording import error_line, one_line
from workflow_engine.models import WorkflowInstance

View = TypeVar("View", bound=Callable[..., HttpResponse])
_HEAVY = ("input", "context", "result")
_ERROR = 90
_ID = 13  # two groups of digits: enough to find it by


def _now(row: WorkflowInstance) -> datetime:
    """The time of the database when it gave the row."""
    now: datetime = vars(row)["read_at"]
    return now


def _outside_transactions(view: View) -> View:
    """With ATOMIC_REQUESTS this view is left out, whatever the database: a drive opens transactions of its own."""
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


@admin.register(WorkflowInstance)
class InstanceAdmin(ReadOnlyAdmin):
    """Searched by id, the beginning of an id, idempotency key, or subject such as shop.order:42."""

    actions = bulk.ACTIONS
    list_display = ("status_pill", "instance", "subject", "current_step", "waits_for", "due", "attempts", "last_error")
    list_display_links = ("instance",)
    list_filter = (
        StatusFilter,
        WorkflowFilter,
        AttentionFilter,
        AgeFilter,
        StepFilter,
        AwaitedFilter,
        TenantFilter,
    )
    search_fields = ("id",)  # asks for the search box; get_search_results says what is searched
    search_help_text = _(
        "An id, its beginning (4 or more digits), an idempotency key, or a subject like shop.order:42."
    )
    ordering = ("-id",)

    def has_act_permission(self, request: HttpRequest, verb: Verb, obj: WorkflowInstance | None = None) -> bool:
        """Whether the user may do that, to this instance or at all. Asked again for each one of many.

        Whoever may do it at all may do it to each; a backend that knows objects may allow single ones besides.
        """
        user: Any = request.user
        return bool(user.has_perm(verb.permission) or (obj is not None and user.has_perm(verb.permission, obj)))

    def _may(self, verb: Verb, request: HttpRequest) -> bool:
        return self.has_act_permission(request, verb)

    # By these names Django asks which actions of the list to offer.
    has_signal_permission = partialmethod(_may, VERBS["signal"])
    has_retry_permission = partialmethod(_may, VERBS["retry"])
    has_resume_permission = partialmethod(_may, VERBS["resume"])
    has_advance_permission = partialmethod(_may, VERBS["advance"])
    has_pause_permission = partialmethod(_may, VERBS["pause"])
    has_cancel_permission = partialmethod(_may, VERBS["cancel"])

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowInstance]:
        rows: QuerySet[WorkflowInstance] = super().get_queryset(request)
        match = request.resolver_match
        if match and str(match.url_name).endswith("_changelist"):
            return rows.defer(*_HEAVY).annotate(read_at=DatabaseNow())
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By equality, on indexed columns: a LIKE over a million rows would find the same, much later."""
        term = search_term.strip()
        return (queryset.filter(meant_by(term)) if term else queryset), False

    def get_urls(self) -> list[URLPattern]:
        view, name = self.admin_site.admin_view, "workflow_engine_workflowinstance"
        return [
            path("overview/", view(self.overview_view), name=f"{name}_overview"),
            path("definitions/", view(self.definitions_view), name=f"{name}_definitions"),
            path("<path:object_id>/act/<slug:verb>/", view(self.act_view), name=f"{name}_act"),
            *super().get_urls(),
        ]

    # Each of many is asked in a transaction of its own, too.
    @_outside_transactions
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, extra_context)

    @_outside_transactions
    def act_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Signal, retry, cancel … this one instance."""
        return acting.act(self, request, object_id, verb)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Why it is here, and what can be done."""
        if request.method not in {"GET", "HEAD"}:
            raise PermissionDenied
        row = self.get_object(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self.back_to_the_list(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": self.title_of(row),
            **page.context_of(self, request, row),
            **(extra_context or {}),
        }
        return rendered(self.admin_site, request, "admin/workflow_engine/workflowinstance/change_form.html", context)

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        """How everything is doing."""
        return pages.overview_page(self, request)

    def definitions_view(self, request: HttpRequest) -> HttpResponse:
        """What this code can run."""
        return pages.definitions_page(self, request)

    def back_to_the_list(self, request: HttpRequest, object_id: str) -> HttpResponseRedirect:
        """There is no such instance, says a message there."""
        told = {"id": one_line(object_id)}
        self.message_user(
            request, _("There is no workflow instance %(id)s. Perhaps it was pruned.") % told, messages.WARNING
        )
        name = "admin:workflow_engine_workflowinstance_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    def title_of(self, row: WorkflowInstance) -> str:
        """Its workflow as people call it, and the version."""
        workflow = registry.get(row.workflow_name, row.definition_version)
        label = str(workflow.label) if workflow else one_line(row.workflow_name)
        return f"{label} {row.definition_version}"

    def database(self) -> str:
        """Where instances are read."""
        return router.db_for_read(WorkflowInstance)

    @admin.display(description=_("status"), ordering="status")
    def status_pill(self, row: WorkflowInstance) -> SafeString:
        return status_of(row)

    @admin.display(description=_("workflow"))
    def instance(self, row: WorkflowInstance) -> SafeString:
        return format_html(
            '{} {}<br><span class="wf-id" title="{}">{}</span>',
            row.workflow_name,
            row.definition_version,
            row.pk,
            str(row.pk)[:_ID],
        )

    @admin.display(description=_("subject"))
    def subject(self, row: WorkflowInstance) -> SafeString | str:
        return subject_of(row, self.admin_site)

    @admin.display(description=_("waits for"))
    def waits_for(self, row: WorkflowInstance) -> SafeString | str:
        now = _now(row)
        what = standing.waits_for(row, now)
        if not what:
            return format_html('<span class="wf-quiet">{} {}</span>', _("ended"), moment(row.finished_at, now))
        since = moment(row.status_changed_at, now)
        return format_html('{}<br><span class="wf-quiet">{} {}</span>', what, _("since"), since)

    @admin.display(description=_("due"))
    def due(self, row: WorkflowInstance) -> SafeString | str:
        return moment(None if row.is_terminal else row.due_at, _now(row))

    @admin.display(description=_("last error"))
    def last_error(self, row: WorkflowInstance) -> SafeString | str:
        text = error_line(redacted_error(row.error))
        if not text:
            return NOTHING
        return format_html('<span class="wf-error" title="{}">{}</span>', text, one_line(text, _ERROR))
