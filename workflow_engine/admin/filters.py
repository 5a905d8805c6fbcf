"""Filters whose choices cost no query, and whose answers come from an index or from few rows.

Steps, awaited names and tenants have no index: a filter by one of them looks at what is live or failed, or at what has
the status that was chosen; at what ended well only as far as it did so within the last 30 days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from workflow_engine import clock
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.outcomes import Await
from workflow_engine.domain.registry import registry
from workflow_engine.domain.statuses import LIVE, Status
from workflow_engine.inspection.source import mentions
from workflow_engine.models.instances import STATUS_LABELS
from workflow_engine.models.querysets import InstanceQuerySet

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

OPEN = LIVE | {Status.FAILED}
"""Where somebody may have to do something."""

_ANY_LIVE = "live"
_LOOKED_AT = timedelta(days=30)
_OVERDUE = timedelta(minutes=1)
_MOST_SUGGESTIONS = 300


class StatusFilter(admin.SimpleListFilter):
    """By status, or by being live."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, _StrOrPromise]]:
        return [(_ANY_LIVE, _("any live one")), *((status.value, label) for status, label in STATUS_LABELS.items())]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == _ANY_LIVE:
            return queryset.filter(status__in=sorted(LIVE))
        return queryset.filter(status=self.value()) if self.value() else queryset


class WorkflowFilter(admin.SimpleListFilter):
    """By workflow, of those that this code knows: the names of all rows would take a scan of the table."""

    title = _("workflow")
    parameter_name = "workflow"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(name, str(registry.newest(name).label)) for name in registry.names()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(workflow_name=self.value()) if self.value() else queryset


class AgeFilter(admin.SimpleListFilter):
    """By how long it has been in its status."""

    title = _("time in status")
    parameter_name = "older"
    AGES = {
        "1h": (_("more than an hour"), timedelta(hours=1)),
        "1d": (_("more than a day"), timedelta(days=1)),
        "7d": (_("more than 7 days"), timedelta(days=7)),
        "30d": (_("more than 30 days"), timedelta(days=30)),
    }

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, _StrOrPromise]]:
        return [(key, label) for key, (label, _age) in self.AGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in self.AGES:
            return queryset
        since = clock.now(queryset.db) - self.AGES[str(self.value())][1]
        return open_or_chosen(request, queryset).filter(status_changed_at__lt=since)


class AttentionFilter(admin.SimpleListFilter):
    """What stands still: nobody takes it up, or somebody paused it."""

    title = _("standing still")
    parameter_name = "still"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, _StrOrPromise]]:
        return [("overdue", _("overdue: nobody took it up")), ("paused", _("paused"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "overdue":
                return queryset.filter(poll_at__lt=clock.now(queryset.db) - _OVERDUE)
            case "paused":
                return open_or_chosen(request, queryset).filter(paused=True)
        return queryset


class TextFilter(admin.SimpleListFilter):
    """A field to type into, with suggestions."""

    template = "admin/workflow_engine/text_filter.html"
    parameter_name = ""

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: type[Any], model_admin: admin.ModelAdmin[Any]
    ) -> None:
        self.kept = [
            (name, value)
            for name, values in request.GET.lists()
            for value in values
            if name not in {self.parameter_name, "p", "e"}
        ]
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [("", "")]  # one choice, so that the filter is shown

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        yield {
            "name": self.parameter_name,
            "value": self.value() or "",
            "kept": self.kept,
            "suggestions": sorted(self.suggestions())[:_MOST_SUGGESTIONS],
            "clear": changelist.get_query_string(remove=[self.parameter_name]),
        }

    def suggestions(self) -> Iterable[str]:
        """What may be meant."""
        return ()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = (self.value() or "").strip()
        return self.matching(open_or_chosen(request, queryset), value) if value else queryset

    def matching(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The rows with that value."""
        raise NotImplementedError


class StepFilter(TextFilter):
    """By the current step."""

    title = _("step")
    parameter_name = "step"

    def suggestions(self) -> Iterable[str]:
        return {key for workflow in registry for key in workflow.steps}

    def matching(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(current_step=value)


class AwaitedFilter(TextFilter):
    """By the name of an awaited signal."""

    title = _("awaited signal")
    parameter_name = "awaits"

    def suggestions(self) -> Iterable[str]:
        return {name for workflow in registry for name in _awaited_by(cast("Any", workflow))}

    def matching(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return cast("InstanceQuerySet", queryset).awaiting(value)


class TenantFilter(TextFilter):
    """By tenant."""

    title = _("tenant")
    parameter_name = "tenant"

    def matching(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(tenant=value)


class EventKindFilter(admin.SimpleListFilter):
    """By what happened."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(kind.value, kind.value.replace("_", " ")) for kind in EventKind]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


def open_or_chosen(request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Few enough rows to look at each of them: see the module."""
    chosen = request.GET.get(StatusFilter.parameter_name, "")
    if not chosen:
        return queryset.filter(status__in=sorted(OPEN))
    if chosen == _ANY_LIVE or chosen in OPEN:
        return queryset
    return queryset.filter(status_changed_at__gte=clock.now(queryset.db) - _LOOKED_AT)


@cache
def _awaited_by(workflow: Any) -> frozenset[str]:
    """The signals that its steps await, as far as their source says so. Read once: it does not change."""
    return frozenset(
        name
        for declared in workflow.steps.values()
        for mention in mentions(workflow, declared)
        if mention.outcome is Await
        for name in mention.names
    )
