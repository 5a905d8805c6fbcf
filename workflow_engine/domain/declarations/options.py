"""The options of a declaration, listed once for decorators, constructors and type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from workflow_engine.domain.durations import Duration
from workflow_engine.domain.retries import RetryPolicy


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
