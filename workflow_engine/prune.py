"""Prune: delete instances that ended long ago, with their history and mailbox."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from workflow_engine import clock
from workflow_engine.domain.statuses import Status
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal
from workflow_engine.models.querysets import InstanceQuerySet

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were deleted (or would be)."""

    instances: int
    events: int
    signals: int


def prunable(using: str, older_than: timedelta, *, with_failed: bool = False) -> InstanceQuerySet:
    """Instances that ended longer ago than `older_than`; failed ones only if asked for: those can still be retried."""
    ended = WorkflowInstance.objects.using(using).filter(finished_at__lt=clock.now(using) - older_than, children=None)
    return ended if with_failed else ended.exclude(status=Status.FAILED)


def prune(rows: InstanceQuerySet, *, limit: int | None = None, progress: Callable[[int], None] | None = None) -> Pruned:
    """Delete these instances batch by batch, each batch in a transaction, locked so that no retry() comes between.

    Args:
        rows: from `prunable`.
        limit: at most so many instances.
        progress: called with the number of instances of each batch.
    """
    total = Pruned(0, 0, 0)
    while limit is None or total.instances < limit:
        size = _BATCH if limit is None else min(_BATCH, limit - total.instances)
        candidates = list(rows.order_by("finished_at").values_list("pk", flat=True)[:size])
        if not candidates:
            break
        batch = _prune_batch(rows, candidates)
        total = Pruned(total.instances + batch.instances, total.events + batch.events, total.signals + batch.signals)
        if progress:
            progress(batch.instances)
    return total


def _prune_batch(rows: InstanceQuerySet, candidates: list[UUID]) -> Pruned:
    """One that was retried since it was found has left the set: it is locked by key, then asked for again."""
    using = rows.db
    with transaction.atomic(using=using):
        locked = WorkflowInstance.objects.using(using).select_for_update().filter(pk__in=candidates).order_by("pk")
        keys = list(locked.values_list("pk", flat=True))
        ids = list(rows.filter(pk__in=keys).values_list("pk", flat=True))
        signals, _ = WorkflowSignal.objects.using(using).filter(instance_id__in=ids).delete()
        events, _ = WorkflowEvent.objects.using(using).filter(instance_id__in=ids).delete()
        instances, _ = WorkflowInstance.objects.using(using).filter(pk__in=ids).delete()
    return Pruned(instances, events, signals)
