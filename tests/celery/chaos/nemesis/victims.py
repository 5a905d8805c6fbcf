from __future__ import annotations

from dataclasses import dataclass

from tests.celery.chaos.cell import Cell
from tests.celery.chaos.fleet import Fleet


@dataclass(frozen=True)
class Victims:
    """Whom it befalls."""

    cell: Cell
    fleet: Fleet
