"""Instances, each with the answer to "why is it here?", the end of its history, and its mailbox."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from workflow_engine import clock
from workflow_engine.admin.filters import WorkflowFilter
from workflow_engine.admin.readonly import ReadOnlyAdmin
from workflow_engine.inspection.finding import meant_by
from workflow_engine.inspection.mail import told
from workflow_engine.inspection.timeline import entry
from workflow_engine.inspection.times import both, relative
from workflow_engine.inspection.why import explain
from workflow_engine.inspection.wording import either, error_line
from workflow_engine.models import WorkflowInstance

_HEAVY = ("input", "context", "result", "compensation_stack", "step_sequence")
_MOST = 50


def _now(row: WorkflowInstance) -> datetime:
    """The clock of the database that the row is from."""
    return clock.now(row._state.db or DEFAULT_DB_ALIAS)


@admin.register(WorkflowInstance)
class InstanceAdmin(ReadOnlyAdmin):
    """The list is searched by id, the beginning of an id, idempotency key, or subject such as shop.order:42."""

    list_display = ("id", "workflow", "subject", "status_in_words", "current_step", "waits_for", "due_at", "last_error")
    list_filter = ("status", WorkflowFilter, "paused")
    search_fields = ("id",)  # asks for the search box; get_search_results says what is searched
    search_help_text = _(
        "An id, its beginning (4 or more digits), an idempotency key, or a subject like shop.order:42."
    )
    ordering = ("-id",)
    date_hierarchy = None
    fieldsets = (
        (None, {"fields": ("id", "workflow", "subject", "idempotency_key", "why")}),
        (_("What happened"), {"fields": ("history", "mailbox")}),
        (_("Data"), {"fields": ("input", "context", "result", "error")}),
        (
            _("Bookkeeping"),
            {
                "classes": ("collapse",),
                "fields": (
                    ("status", "paused", "ends_as"),
                    ("current_step", "visit", "attempts"),
                    "step_sequence",
                    ("due_at", "deadline_at", "poll_at"),
                    ("suspect", "recoveries"),
                    ("lease_owner", "lease_token"),
                    "cancel_requested",
                    "compensation_stack",
                    ("tenant", "queue"),
                    ("created_at", "started_at", "status_changed_at", "finished_at"),
                ),
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowInstance]:
        rows = super().get_queryset(request)
        match = request.resolver_match
        return rows.defer(*_HEAVY) if match and str(match.url_name).endswith("_changelist") else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By equality, on indexed columns: a LIKE over a million rows would find the same, much later."""
        term = search_term.strip()
        return (queryset.filter(meant_by(term)) if term else queryset), False

    @admin.display(description=_("workflow"), ordering="workflow_name")
    def workflow(self, row: WorkflowInstance) -> str:
        return f"{row.workflow_name} {row.definition_version}"

    @admin.display(description=_("subject"))
    def subject(self, row: WorkflowInstance) -> str:
        return ":".join(row.subject_ref or ())

    @admin.display(description=_("status"), ordering="status")
    def status_in_words(self, row: WorkflowInstance) -> str:
        status = str(row.get_status_display())
        return str(_("%(status)s, paused")) % {"status": status} if row.paused else status

    @admin.display(description=_("waits for"))
    def waits_for(self, row: WorkflowInstance) -> str:
        return either(row.awaiting_signals)

    @admin.display(description=_("error"))
    def last_error(self, row: WorkflowInstance) -> str:
        return error_line(row.error)

    @admin.display(description=_("why it is here"))
    def why(self, row: WorkflowInstance) -> SafeString:
        now = _now(row)
        why = explain(row, now)
        lines: list[tuple[Any, str]] = [(_("Status"), why.headline), (_("Since"), both(why.since, now))]
        lines += [(_("Waits for"), why.waits_for)] if why.waits_for else []
        lines += [(_("Until"), both(why.until, now))] if why.until else []
        lines += [(_("Went wrong"), why.wrong)] if why.wrong else []
        lines += [(_("Next"), note) for note in why.notes]
        lines += [(_("Steps left"), ", ".join(why.remaining))] if why.remaining else []
        return format_html_join(mark_safe("<br>"), "<strong>{}</strong> {}", lines)

    @admin.display(description=_("history"))
    def history(self, row: WorkflowInstance) -> SafeString:
        now = _now(row)
        entries = [entry(event) for event in row.events.order_by("-seq")[:_MOST]]
        lines = [(item.seq, relative(item.at, now), item.text, item.actor) for item in reversed(entries)]
        listed = format_html_join(mark_safe("<br>"), "{}. {}: {} {}", lines)
        return format_html("{}<br>{}", listed, self._all_of(row, "workflowevent", _("all events")))

    @admin.display(description=_("mailbox"))
    def mailbox(self, row: WorkflowInstance) -> SafeString:
        now = _now(row)
        newest = list(row.signals.order_by("-id")[:_MOST])
        lines = [(relative(item.received_at, now), told(item)) for item in reversed(newest)]
        listed = format_html_join(mark_safe("<br>"), "{}: {}", lines)
        return format_html("{}<br>{}", listed, self._all_of(row, "workflowsignal", _("all signals")))

    def _all_of(self, row: WorkflowInstance, model: str, text: Any) -> SafeString:
        name, query = f"admin:workflow_engine_{model}_changelist", {"instance__id__exact": str(row.pk)}
        url = reverse(name, query=query, current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, text)
