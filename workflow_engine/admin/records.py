"""The rows that belong to instances, and the processes that work on them."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from workflow_engine.admin.filters import EventKindFilter
from workflow_engine.admin.pieces import instance_url
from workflow_engine.admin.readonly import ReadOnlyAdmin
from workflow_engine.inspection.redaction import readable, redacted_event
from workflow_engine.inspection.timeline import entry
from workflow_engine.models import WorkflowEvent, WorkflowSignal, WorkflowWorker


class RecordAdmin(ReadOnlyAdmin):
    """Rows that belong to an instance."""

    ordering = ("-id",)

    @admin.display(description=_("instance"))
    def of_instance(self, row: WorkflowEvent | WorkflowSignal) -> SafeString:
        """A link made of the id alone: the instance itself is not fetched."""
        return format_html('<a href="{}">{}</a>', instance_url(row.instance_id, self.admin_site), row.instance_id)

    @admin.display(description=_("data"))
    def shown_data(self, row: WorkflowEvent | WorkflowSignal) -> SafeString:
        """Masked, and cut in size."""
        shown = readable(row.data)
        return format_html(
            '<pre class="wf-json">{}{}</pre>', shown.text, "\N{HORIZONTAL ELLIPSIS}" if shown.cut else ""
        )


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
        "shown_data",
    )

    @admin.display(description=_("what happened"))
    def in_words(self, row: WorkflowEvent) -> str:
        row.data = redacted_event(row.data)
        return entry(row).text


@admin.register(WorkflowSignal)
class SignalAdmin(RecordAdmin):
    list_display = ("id", "of_instance", "kind", "name", "state", "actor", "received_at")
    list_filter = ("state", "kind")
    fields = (
        "of_instance",
        ("kind", "name"),
        "shown_data",
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
