"""The rows that belong to instances, and the processes that work on them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from workflow_engine.admin.filters import EventKindFilter
from workflow_engine.admin.readonly import ReadOnlyAdmin
from workflow_engine.inspection.timeline import entry
from workflow_engine.models import WorkflowEvent, WorkflowSignal, WorkflowWorker


class RecordAdmin(ReadOnlyAdmin):
    """Rows that belong to an instance."""

    ordering = ("-id",)

    @admin.display(description=_("instance"))
    def of_instance(self, row: WorkflowEvent | WorkflowSignal) -> SafeString:
        """A link made of the id alone: the instance itself is not fetched."""
        name = "admin:workflow_engine_workflowinstance_change"
        url = reverse(name, args=(row.instance_id,), current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, row.instance_id)


@admin.register(WorkflowEvent)
class EventAdmin(RecordAdmin):
    list_display = ("id", "of_instance", "seq", "created_at", "in_words", "actor", "duration")
    list_filter = (EventKindFilter,)
    fields = (
        "of_instance",
        ("seq", "kind"),
        ("step", "visit", "attempt"),
        ("actor", "trigger"),
        ("created_at", "duration"),
        "data",
    )

    @admin.display(description=_("what happened"))
    def in_words(self, row: WorkflowEvent) -> str:
        return entry(row).text


@admin.register(WorkflowSignal)
class SignalAdmin(RecordAdmin):
    list_display = ("id", "of_instance", "kind", "name", "state", "actor", "received_at")
    list_filter = ("state", "kind")
    fields = (
        "of_instance",
        ("kind", "name"),
        "data",
        ("actor", "idempotency_key"),
        ("state", "reason"),
        ("received_at", "consumed_at"),
        ("consumed_step", "consumed_visit"),
    )


@admin.register(WorkflowWorker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("kind", "host", "pid", "started_at", "seen_at")
    list_filter = ("kind",)
    ordering = ("-seen_at",)
    fields = ("kind", ("host", "pid"), ("started_at", "seen_at"), "knows")
