"""Idempotency keys: insert once, find again, on every database."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError, connections, transaction
from django.db.models import Model

from workflow_engine import serialization

M = TypeVar("M", bound=Model)

_LIMIT = 255


def checked_key(key: str | None) -> str | None:
    """The caller's idempotency key, or None for none. An empty one is refused: it would make all its users one.

    Raises:
        NotSerializableError: it is no text, or none that can be stored.
    """
    return None if key is None else serialization.short_text(key, "idempotency key", _LIMIT)


def find_or_insert(model: type[M], key_hash: str | None, insert: Callable[[], M], using: str) -> tuple[M, bool]:
    """The row of that key, or the one `insert` makes; and whether it was made now.

    The INSERT runs in a savepoint, and only its unique violation is caught: whoever else inserted the key has
    committed by then, so the row can be read. On MySQL and MariaDB it is read with a lock, because a snapshot older
    than that commit would not show it.

    Raises:
        IntegrityError: another constraint refused the row.
    """
    if key_hash is None:
        return insert(), True
    found = model._default_manager.using(using).filter(key_hash=key_hash).first()
    if found is not None:
        return found, False
    try:
        with transaction.atomic(using=using):
            return insert(), True
    except IntegrityError:
        rows = model._default_manager.using(using).filter(key_hash=key_hash)
        if connections[using].vendor == "mysql":
            rows = rows.select_for_update()
        found = rows.first()
        if found is None:
            raise
        return found, False
