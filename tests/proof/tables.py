"""The tables as the database has them: read with plain SQL, by no model and through no query of the engine's."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Tables:
    """Everything at one moment. Ids of instances are texts; times are aware, in UTC."""

    instances: Mapping[str, Row]
    events: Mapping[str, Sequence[Row]]
    mail: Mapping[int, Row]
    effects: Sequence[Row]
    """What transactional handlers wrote (the table of `tests.shop.models.Effect`)."""


def read(using: str = "default", connection: BaseDatabaseWrapper | None = None) -> Tables:
    """Read all of it, through a connection of its own unless one is given."""
    own = connection is None
    connection = connections.create_connection(using) if connection is None else connection
    try:
        events: dict[str, list[Row]] = defaultdict(list)
        for row in _rows(connection, "workflow_events", "instance_id, seq"):
            events[row["instance_id"]].append(row)
        return Tables(
            instances={row["id"]: row for row in _rows(connection, "workflow_instances", "id")},
            events=events,
            mail={row["id"]: row for row in _rows(connection, "workflow_signals", "id")},
            effects=_rows(connection, "test_shop_effect", "id"),
        )
    finally:
        if own:
            connection.close()


def wipe(using: str = "default") -> None:
    """Empty the tables, so that the next case starts from nothing."""
    with connections[using].cursor() as cursor:
        for table in ("workflow_signals", "workflow_events", "workflow_instances", "workflow_workers"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
        for table in ("test_shop_effect", "test_shop_counter"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own


def _rows(connection: BaseDatabaseWrapper, table: str, order: str) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY {order}")  # noqa: S608 - names of our own
        names = [column[0] for column in cursor.description]
        return [
            {name: _FORMS.get((table, name), _as_is)(value) for name, value in zip(names, row, strict=True)}
            for row in cursor.fetchall()
        ]


def _as_is(value: Any) -> Any:
    """A time as an aware one, everything else as the driver gives it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str | bytes) else value


def _key(value: Any) -> str:
    return str(value if isinstance(value, UUID) else UUID(str(value)))


_FORMS: Mapping[tuple[str, str], Callable[[Any], Any]] = {
    ("workflow_instances", "id"): _key,
    ("workflow_events", "instance_id"): _key,
    ("workflow_signals", "instance_id"): _key,
    ("test_shop_effect", "instance_id"): _key,
    ("workflow_instances", "paused"): bool,
    ("workflow_instances", "suspect"): bool,
    ("workflow_events", "data"): _json,
    ("workflow_signals", "data"): _json,
    **{
        ("workflow_instances", name): _json
        for name in (
            "step_sequence",
            "input",
            "context",
            "result",
            "error",
            "awaiting_signals",
            "cancel_requested",
            "compensation_stack",
        )
    },
}
