"""The Celery tasks. Each is a hint to look at the tables: lost, doubled, late or forged, it changes nothing.

`acks_late` without `reject_on_worker_lost`: a message whose worker died is neither lost by prefetching nor sent round
in circles; recovery is tick's job, which counts it.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from celery import shared_task
from django.db import close_old_connections

from workflow_engine import clock, conf
from workflow_engine import engine as verbs
from workflow_engine.engine.connections import guard_connections
from workflow_engine.engine.driving import drive
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

_registrations: dict[tuple[int, str], Registration] = {}


@shared_task(name="workflow_engine.advance", **OPTIONS)
def advance(instance_id: str, using: str = "default") -> None:
    """Drive one instance until it parks."""
    _prepare(using)
    driven = drive(UUID(instance_id), using)
    if driven.answer == Answer.NOT_DUE and (early := _earliness(UUID(instance_id), using)):
        time.sleep(early.total_seconds())
        drive(UUID(instance_id), using)


@shared_task(name="workflow_engine.tick", **OPTIONS)
def tick(using: str = "default") -> None:
    """Hand out what is due and nobody works on. Run it every TICK_INTERVAL; several at once do no harm."""
    close_old_connections()
    hand_out(using)


@shared_task(name="workflow_engine.prune", **OPTIONS)
def prune(using: str = "default") -> None:
    """Delete instances that ended longer than RETENTION ago."""
    close_old_connections()
    delete(prunable(using, conf.current().duration("RETENTION")))


@shared_task(name="workflow_engine.start", **OPTIONS)
def start(
    workflow: str,
    context: dict[str, Any] | None = None,
    slot: str = "%Y-%m-%dT%H:%M",
    tenant: str = "",
    using: str = "default",
) -> None:
    """Start a recurring workflow, once per slot: its idempotency key is the time cut down to `slot`.

    Args:
        workflow: its name; the newest version is started.
        context: what it starts with.
        slot: a strftime format of UTC that is the same during one period and another in the next: for a daily schedule
            "%Y-%m-%d". Two beats, or a message that is delivered twice, start one instance.
        tenant: as in `engine.start`.
        using: the database alias.
    """
    close_old_connections()
    key = clock.now(using).strftime(slot)
    verbs.start(
        workflow, context=context, idempotency_key=f"schedule:{key}", tenant=tenant, actor="schedule", using=using
    )


def _prepare(using: str) -> None:
    """A worker's child lives long: its connection is replaced when it broke, guarded, and the process made known."""
    close_old_connections()
    guard_connections(using)
    key = (os.getpid(), using)
    if key not in _registrations:
        _registrations[key] = Registration(WorkflowWorker.Kind.CELERY, using)
    _registrations[key].renew()


def _earliness(instance_id: UUID, using: str) -> timedelta | None:
    """How long until the instance is due, if that is soon enough to wait for it here, outside any transaction."""
    due_at = WorkflowInstance.objects.using(using).filter(pk=instance_id).values_list("due_at", flat=True).first()
    if due_at is None:
        return None
    early = due_at - clock.now(using)
    return early if timedelta() < early <= LONGEST_WAIT else None
