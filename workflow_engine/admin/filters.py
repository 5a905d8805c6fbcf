"""Filters whose choices cost no query."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from workflow_engine.domain.events import EventKind
from workflow_engine.domain.registry import registry


class WorkflowFilter(admin.SimpleListFilter):
    """By workflow, of those that this code knows: the names of all rows would take a scan of the table."""

    title = _("workflow")
    parameter_name = "workflow"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(name, str(registry.newest(name).label)) for name in registry.names()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(workflow_name=self.value()) if self.value() else queryset


class EventKindFilter(admin.SimpleListFilter):
    """By what happened."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(kind.value, kind.value.replace("_", " ")) for kind in EventKind]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(kind=self.value()) if self.value() else queryset
