"""Counting without counting a whole table."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

CAP = 10_000
"""So many rows are counted at most."""


class AtLeast(int):
    """A count that was given up: it prints as "10,000+"."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


def count_of(rows: QuerySet[Any], cap: int = CAP) -> int:
    """How many rows there are; an `AtLeast` where there are more than `cap`. Reads no more than that."""
    counted = rows.order_by()[: cap + 1].count()
    return AtLeast(cap) if counted > cap else counted
