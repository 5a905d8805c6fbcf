"""Is work getting done? A few figures about the whole, and what is wrong with them. For people and for probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Max, Min, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workflow_engine import clock, conf
from workflow_engine.dispatch import dispatcher
from workflow_engine.domain.statuses import Status
from workflow_engine.inspection import workers
from workflow_engine.inspection.times import length
from workflow_engine.models import WorkflowInstance, WorkflowSignal, WorkflowWorker

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The figures. Ages are None where there is nothing that could have one."""

    oldest_due: timedelta | None
    """For how long the instance that has waited longest could have been acted on. A step that takes long counts."""
    last_tick: timedelta | None
    workers: Mapping[str, int] = field(default_factory=dict)
    """Processes that reported lately, by kind. An idle Celery worker has nothing to report."""
    pending: int
    """Signals and requests that nobody has looked at."""
    failed: int
    """Instances that failed in the last hour and still are."""
    suspects: int
    """Instances whose process disappeared, not yet taken up again."""

    @property
    def workers_total(self) -> int:
        """Without ticks: those do no work."""
        return sum(count for kind, count in self.workers.items() if kind != WorkflowWorker.Kind.TICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is still healthy; None sets no limit."""

    due_age: timedelta | None = timedelta(minutes=2)
    tick_age: timedelta | None = None
    workers: int | None = None
    pending: int | None = None
    failed: int | None = None
    suspects: int | None = None


def default_limits() -> Limits:
    """Limits that hold for any project: work is taken up, and whoever has to see to that is there."""
    if dispatcher().pushes:
        return Limits(tick_age=longest_tick_age())
    return Limits(workers=1 if conf.current().DISPATCHER == "database" else None)


def longest_tick_age() -> timedelta:
    """After so long without a tick something is wrong, and not only slow."""
    return max(3 * conf.current().duration("TICK_INTERVAL"), timedelta(minutes=1))


def read(using: str) -> Health:
    """Ask the tables; each question has an index to answer it."""
    now = clock.now(using)
    oldest = near(using, now).filter(due_at__lte=now).aggregate(at=Min("due_at"))["at"]
    failed = WorkflowInstance.objects.using(using).filter(status=Status.FAILED, finished_at__gte=now - HOUR)
    return Health(
        oldest_due=None if oldest is None else now - oldest,
        last_tick=last_tick(using, now),
        workers=Counter(worker.kind for worker in workers.seen(using, now)),
        pending=WorkflowSignal.objects.using(using).pending().count(),
        failed=failed.count(),
        suspects=near(using, now).filter(suspect=True).count(),
    )


def last_tick(using: str, now: datetime) -> timedelta | None:
    """How long ago one ran; None if none ever did."""
    ticks = WorkflowWorker.objects.using(using).filter(kind=WorkflowWorker.Kind.TICK)
    at = ticks.aggregate(at=Max("seen_at"))["at"]
    return None if at is None else now - at


def near(using: str, now: datetime) -> QuerySet[WorkflowInstance]:
    """All that is due, and little else: whatever is due is looked at again within the longest of these times, even if
    it is held, handed out or postponed. A million sleeping rows are not read.
    """
    settings = conf.current()
    again = max(settings.duration(name) for name in ("HOLD", "GRACE", "POSTPONE"))
    return WorkflowInstance.objects.using(using).live().due(now + again + settings.duration("TICK_INTERVAL")).order_by()


def problems(health: Health, limits: Limits) -> list[str]:
    """What is beyond the limits, a sentence each."""
    return [*_too_old(health, limits), *_wrong_counts(health, limits)]


def _too_old(health: Health, limits: Limits) -> Iterator[str]:
    if limits.due_age is not None and health.oldest_due is not None and health.oldest_due > limits.due_age:
        told = {"age": length(health.oldest_due), "limit": length(limits.due_age)}
        yield _("An instance has been due for %(age)s; the limit is %(limit)s.") % told
    if limits.tick_age is None:
        return
    if health.last_tick is None:
        yield _("No tick has run.")
    elif health.last_tick > limits.tick_age:
        told = {"age": length(health.last_tick), "limit": length(limits.tick_age)}
        yield _("The last tick ran %(age)s ago; the limit is %(limit)s.") % told


def _wrong_counts(health: Health, limits: Limits) -> Iterator[str]:
    if limits.workers is not None and health.workers_total < limits.workers:
        counts = {"count": health.workers_total, "limit": limits.workers}
        text = ngettext(
            "%(count)d worker has reported lately; there should be %(limit)d.",
            "%(count)d workers have reported lately; there should be %(limit)d.",
            health.workers_total,
        )
        yield text % counts
    for text, count, limit in (
        (_("Signals that nobody has looked at: %(count)d; the limit is %(limit)d."), health.pending, limits.pending),
        (_("Instances that failed in the last hour: %(count)d; the limit is %(limit)d."), health.failed, limits.failed),
        (_("Instances that lost their process: %(count)d; the limit is %(limit)d."), health.suspects, limits.suspects),
    ):
        if limit is not None and count > limit:
            yield text % {"count": count, "limit": limit}
