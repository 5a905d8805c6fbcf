"""Reading all tables, again and again: a row that has not changed since an earlier reading is not made anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet

from tests.model.replay import Row, Tables
from tests.shop.models import Effect
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal


class Statement:
    """A query that is compiled once, which takes longer than to run it."""

    def __init__(self, rows: QuerySet[Any], *names: str) -> None:
        self._compiler = rows.values_list(*names).query.get_compiler(rows.db)
        self._sql = self._compiler.as_sql()
        self._converters = self._compiler.get_converters([expression for expression, _, _ in self._compiler.select])
        self._names = names

    def rows(self, known: Mapping[Any, Row]) -> Iterator[tuple[Any, Row]]:
        """Each row as the driver gives it, and as Django does."""
        with connections[self._compiler.using].cursor() as cursor:
            cursor.execute(*self._sql)
            found = cursor.fetchall()
        for raw in found:
            yield raw, known.get(raw) or self._made(raw)

    def _made(self, raw: Any) -> Row:
        (values,) = self._compiler.apply_converters([raw], self._converters)
        return dict(zip(self._names, values, strict=True))


def read(using: str = "default", limits: Mapping[str, int] | None = None, before: Tables | None = None) -> Tables:
    """Read all tables, in one order: a history is never older than the row it belongs to.

    Args:
        using: the database alias.
        limits: the most attempts of a step, where that is known.
        before: an earlier reading, which is returned if nothing has changed since.
    """
    statements = _statements(using)
    known = before.raw if before else [{}] * len(statements)
    raw = [dict(statement.rows(each)) for statement, each in zip(statements, known, strict=True)]
    if before is not None and raw == before.raw:
        return before
    instances, histories, signals, effects = (each.values() for each in raw)
    events: dict[UUID, list[Row]] = {row["id"]: [] for row in instances}
    for row in histories:
        events.setdefault(row["instance_id"], []).append(row)
    return Tables(
        instances={row["id"]: row for row in instances},
        signals={row["id"]: row for row in signals},
        events=events,
        effects=list(effects),
        limits=limits or {},
        raw=raw,
    )


@cache
def _statements(using: str) -> list[Statement]:
    return [
        _all_of(WorkflowInstance.objects.using(using)),
        _all_of(WorkflowEvent.objects.using(using).order_by("instance_id", "seq")),
        _all_of(WorkflowSignal.objects.using(using)),
        _all_of(Effect.objects.using(using)),
    ]


def _all_of(rows: QuerySet[Any]) -> Statement:
    return Statement(rows, *(field.attname for field in rows.model._meta.concrete_fields))
