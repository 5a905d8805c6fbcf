"""Statuses of an instance and the one table of legal transitions between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from workflow_engine.exceptions import IllegalTransitionError


class Status(StrEnum):
    """Where an instance stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    AWAITING = "awaiting"
    SLEEPING = "sleeping"
    COMPENSATING = "compensating"
    COMPLETED = "completed"
    FAILED = "failed"
    COMPENSATED = "compensated"
    CANCELLED = "cancelled"


_ENDINGS = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.COMPENSATING})
_FORWARD = frozenset({Status.IN_PROGRESS, Status.AWAITING, Status.SLEEPING})

TRANSITIONS: Mapping[Status, frozenset[Status]] = MappingProxyType(
    {
        Status.PENDING: _FORWARD | _ENDINGS,
        Status.IN_PROGRESS: _FORWARD | _ENDINGS,
        Status.AWAITING: _FORWARD | _ENDINGS,
        Status.SLEEPING: frozenset({Status.IN_PROGRESS}) | _ENDINGS,
        Status.COMPENSATING: frozenset({Status.COMPENSATED, Status.FAILED, Status.CANCELLED}),
        # Only retry() leaves a terminal status: to the failed step, to the failed handler, or to unfinished undos.
        Status.FAILED: frozenset({Status.IN_PROGRESS, Status.AWAITING, Status.COMPENSATING}),
        Status.COMPLETED: frozenset(),
        Status.COMPENSATED: frozenset(),
        Status.CANCELLED: frozenset(),
    }
)

TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.COMPENSATED, Status.CANCELLED})
LIVE = frozenset(Status) - TERMINAL
PARKED = frozenset({Status.AWAITING, Status.SLEEPING})


def check_transition(old: Status, new: Status) -> None:
    """Refuse a move that the table does not list; staying is always legal.

    Raises:
        IllegalTransitionError: the move is not in `TRANSITIONS`.
    """
    if new != old and new not in TRANSITIONS[old]:
        raise IllegalTransitionError(old, new)
