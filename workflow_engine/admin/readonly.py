"""Looking without touching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from workflow_engine.inspection.capped import count_of

if TYPE_CHECKING:
    # Generic for the type checker only: Django's own classes take no parameters.
    ModelAdmin = admin.ModelAdmin[Any]
    AnyPaginator = Paginator[Any]
else:
    ModelAdmin, AnyPaginator = admin.ModelAdmin, Paginator


class CappedPaginator(AnyPaginator):
    """Counts so many rows at most: a COUNT(*) over a million of them takes longer than anybody looks at the page."""

    @cached_property
    def count(self) -> int:
        return count_of(cast("QuerySet[Any]", self.object_list))


class ReadOnlyAdmin(ModelAdmin):
    """No row of the engine is added, changed or deleted by hand: that would tear history and state apart."""

    actions: Any = None
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each of them is a COUNT(*)
    list_per_page = 50
    list_max_show_all = 100
    sortable_by = ()  # a click must not sort a million rows

    class Media:
        css = {"all": ["workflow_engine/admin.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
