"""The options of a declaration, listed once for decorators, constructors and type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from workflow_engine.domain.durations import Duration
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.exceptions import DefinitionError, nearest


class UndoOptions(TypedDict, total=False):
    """How a compensation runs. `atomic`: inside the transaction that records it, so exactly once, for ORM work."""

    retry: RetryPolicy
    atomic: bool
    timeout: Duration
    lease: Duration


class StepOptions(TypedDict, total=False):
    """`key`: what rows store, default the attribute's name. `goes_to`: the only keys a Goto may name."""

    key: str
    retry: RetryPolicy | None
    queue: str
    goes_to: Sequence[str] | None
    undo: UndoOptions


class ActivityOptions(StepOptions, total=False):
    """`timeout`: the longest an attempt may take. `lease`: the longest it may go without a heartbeat."""

    timeout: Duration
    lease: Duration


def check_options(given: Mapping[str, Any], known: type, where: str) -> None:
    """Refuse an option that `known`, a TypedDict, does not have."""
    for name in given:
        if name not in known.__annotations__:
            raise DefinitionError(where, f"there is no option {name!r}", nearest(name, known.__annotations__))
