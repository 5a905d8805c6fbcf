"""The Celery tasks. Each is a hint to look at the tables: lost, doubled, late or forged, it changes nothing.

`acks_late` without `reject_on_worker_lost`: a message whose worker died is neither lost by prefetching nor sent round
in circles; recovery is tick's job, which counts it.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from celery import shared_task
from celery.signals import before_task_publish
from django.db import InterfaceError, OperationalError, close_old_connections, connections

from workflow_engine import clock, conf
from workflow_engine import engine as verbs
from workflow_engine.engine.connections import limit_idle_transactions
from workflow_engine.engine.driving import drive_patiently
from workflow_engine.engine.turns import Answer
from workflow_engine.models import WorkflowInstance, WorkflowWorker
from workflow_engine.prune import prunable
from workflow_engine.prune import prune as delete
from workflow_engine.tick import tick as hand_out
from workflow_engine.worker.registration import Registration

OPTIONS: dict[str, Any] = {
    "acks_late": True,
    "reject_on_worker_lost": False,
    "ignore_result": True,
    "max_retries": 0,
}
LONGEST_WAIT = timedelta(seconds=2)
"""A message may come a little before its time; longer waits are left to tick."""

START = "workflow_engine.start"
SENT_AT = "workflow_engine_sent_at"

_registrations: dict[tuple[int, str], Registration] = {}


@shared_task(name="workflow_engine.advance", **OPTIONS)
def advance(instance_id: str, using: str = "default", queue: str = "") -> None:
    """Drive one instance until it parks, or until a step asks for another queue than this message's."""
    _prepare(using)
    driven = drive_patiently(UUID(instance_id), using, queue=queue)
    if driven.answer == Answer.NOT_DUE and (early := _earliness(UUID(instance_id), using)) is not None:
        time.sleep(early.total_seconds())
        drive_patiently(UUID(instance_id), using, queue=queue)


@shared_task(name="workflow_engine.tick", **OPTIONS)
def tick(using: str = "default") -> None:
    """Hand out what is due and nobody works on. Run it every TICK_INTERVAL; several at once do no harm."""
    _prepare(using)
    hand_out(using)


@shared_task(name="workflow_engine.prune", **OPTIONS)
def prune(using: str = "default") -> None:
    """Delete instances that ended longer than RETENTION ago."""
    _prepare(using)
    delete(prunable(using, conf.current().duration("RETENTION")))


@shared_task(
    name=START,
    bind=True,
    # Nothing in the tables tells tick about a start that got lost; the key makes repeating it harmless.
    autoretry_for=(OperationalError, InterfaceError),
    default_retry_delay=10,
    **OPTIONS | {"reject_on_worker_lost": True, "max_retries": 30},
)
def start(
    self: Any,
    workflow: str,
    context: dict[str, Any] | None = None,
    *,
    slot: str = "%Y-%m-%dT%H:%M%z",
    zone: str = "",
    schedule: str = "",
    tenant: str = "",
    using: str = "default",
) -> None:
    """Start a recurring workflow, once per slot: its idempotency key is the time of sending, cut down to the slot.

    Two beats, or a message that is delivered twice, start one instance. The sender's clock counts, which was never
    before its own schedule: a late message, or a database whose clock is a little behind, is in no other slot.

    Args:
        self: the task.
        workflow: its name; the newest version is started.
        context: what it starts with.
        slot: a strftime format that gives the same text during one period and another in the next: "%Y-%m-%d" for a
            daily schedule, "%G-W%V" for a weekly one.
        zone: the time zone that the schedule goes by, such as "Europe/Berlin". Default: Celery's.
        schedule: tells several schedules of one workflow apart.
        tenant: as in `engine.start`.
        using: the database alias.

    Raises:
        ValueError: the slot is the same at all times.
    """
    if "%" not in slot:
        raise ValueError(f"slot is {slot!r}: the workflow would start once and never again. Give a strftime format.")
    _prepare(using)
    stamp = self.request.get(SENT_AT)
    sent_at = datetime.fromisoformat(stamp) if stamp else clock.now(using)
    key = ":".join(filter(None, ("schedule", schedule, sent_at.astimezone(_zone(self, zone)).strftime(slot))))
    verbs.start(workflow, context=context, idempotency_key=key, tenant=tenant, actor="schedule", using=using)


@before_task_publish.connect(sender=START)
def _stamp(headers: dict[str, Any], **_: Any) -> None:
    """Note when a start is sent; a retry keeps the first time."""
    headers.setdefault(SENT_AT, datetime.now(UTC).isoformat())


def _zone(task: Any, name: str) -> Any:
    return ZoneInfo(name) if name else task.app.timezone


def _prepare(using: str) -> None:
    """A worker's child lives long: a connection that broke meanwhile is replaced, and the process made known."""
    close_old_connections()
    limit_idle_transactions(using)
    connection = connections[using]
    if connection.connection is not None and not connection.in_atomic_block and not connection.is_usable():
        connection.close()
    key = (os.getpid(), using)
    if key not in _registrations:
        _registrations[key] = Registration(WorkflowWorker.Kind.CELERY, using)
    _registrations[key].renew()


def _earliness(instance_id: UUID, using: str) -> timedelta | None:
    """How long until the instance is due, if that is soon enough to wait for it here, outside any transaction. Nothing,
    if it has become due since it was found to be early: nobody else may come for it.
    """
    due_at = WorkflowInstance.objects.using(using).filter(pk=instance_id).values_list("due_at", flat=True).first()
    if due_at is None:
        return None
    early = max(due_at - clock.now(using), timedelta())
    return early if early <= LONGEST_WAIT else None
