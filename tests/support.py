"""Arrangement and assertions that the tests of the engine share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from workflow_engine import RetryPolicy, clock
from workflow_engine.engine import store
from workflow_engine.engine.addressing import Addressed
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal
from workflow_engine.testing import drain, reload

ONCE = RetryPolicy(max_attempts=1)
TWICE = RetryPolicy(max_attempts=2, initial_delay=10, jitter=False)
THRICE = RetryPolicy(max_attempts=3, initial_delay=10, multiplier=3, jitter=False)


def settled(instance: Addressed) -> WorkflowInstance:
    """The instance after everything that is due now has run."""
    drain()
    return reload(instance)


def later(instance: Addressed, **units: float) -> WorkflowInstance:
    """The instance after so much time has passed, e.g. `later(instance, hours=1)`, and what became due has run."""
    clock.shift(timedelta(**units))
    return settled(instance)


def events(instance: WorkflowInstance, kind: str = "") -> list[WorkflowEvent]:
    """The history, or its entries of one kind."""
    rows = WorkflowEvent.objects.filter(instance_id=instance.pk).order_by("seq")
    return list(rows.filter(kind=kind) if kind else rows)


def kinds(instance: WorkflowInstance) -> list[str]:
    """The history as the kinds of its entries."""
    return [event.kind for event in events(instance)]


def mailbox(instance: WorkflowInstance) -> list[tuple[str, str]]:
    """What came in, in order: (name, state)."""
    rows = WorkflowSignal.objects.filter(instance_id=instance.pk).order_by("id")
    return list(rows.values_list("name", "state"))


def error_of(instance: WorkflowInstance) -> tuple[str, str]:
    """Type and message of the error that the row keeps."""
    assert instance.error is not None
    return instance.error["type"], instance.error["message"]


def seconds_until(moment: datetime | None) -> int:
    """Rounded, by the engine's clock."""
    assert moment is not None
    return round((moment - clock.now("default")).total_seconds())


def assert_history_is_the_row(instance: WorkflowInstance) -> None:
    """Folding the history gives the row (invariant 2), told by the engine's own means."""
    assert store.comparable(store.folded(instance)) == store.comparable(store.state_of(instance))


def data_of(event: WorkflowEvent, *keys: str) -> Any:
    """Some of what an event tells; one value for one key."""
    return event.data[keys[0]] if len(keys) == 1 else {key: event.data[key] for key in keys}
