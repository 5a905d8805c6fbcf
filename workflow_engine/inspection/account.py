"""Everything that is told of one instance, read at one time: for a terminal, and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflow_engine import clock
from workflow_engine.inspection import workers
from workflow_engine.inspection.why import Why, explain
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal

_MAIL = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """`events` may be only the end of the history; `mailbox` is what is left in it, the oldest first."""

    row: WorkflowInstance
    now: datetime
    why: Why
    events: Sequence[WorkflowEvent]
    mailbox: Sequence[WorkflowSignal]
    no_worker: str


def account_of(row: WorkflowInstance, using: str, *, last: int | None) -> Account:
    """The whole account of an instance; of its history only the last so many events."""
    now = clock.now(using)
    events = row.events.order_by("-seq")
    return Account(
        row=row,
        now=now,
        why=explain(row, now),
        events=list(reversed(events if last is None else events[:last])),
        mailbox=list(row.signals.unconsumed()[:_MAIL]),
        no_worker=workers.missing_for(row, using, now),
    )
