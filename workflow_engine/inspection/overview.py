"""How all the workflows are doing, from questions that stay cheap however many rows there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from workflow_engine import clock
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.registry import registry
from workflow_engine.domain.statuses import Status
from workflow_engine.inspection import workers
from workflow_engine.inspection.capped import CAP, count_of
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowWorker
from workflow_engine.models.querysets import InstanceQuerySet

LATELY = timedelta(hours=24)
_OLDEST = 10
_MOST_NAMES = 200
HEAVY = ("input", "context", "result", "compensation_stack")


@dataclass(frozen=True, slots=True)
class Counts:
    """Instances of one workflow by status; a count may be an `AtLeast`."""

    name: str
    label: str
    by_status: Mapping[Status, int]


@dataclass(frozen=True, slots=True)
class Failures:
    """Attempts at a step that failed, and how many of them for good."""

    workflow: str
    step: str
    attempts: int
    for_good: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What the overview tells. `failures` are of the last 24 hours, the most first; `last_tick` None if never."""

    now: datetime
    counts: Sequence[Counts]
    oldest: Sequence[WorkflowInstance]
    failures: Sequence[Failures]
    failures_are_capped: bool
    workers: Sequence[WorkflowWorker]
    last_tick: datetime | None
    no_worker: str


def overview(using: str) -> Overview:
    """Ask everything once."""
    now = clock.now(using)
    failures, capped = _failures(using, now)
    ticks = WorkflowWorker.objects.using(using).filter(kind=WorkflowWorker.Kind.TICK)
    return Overview(
        now=now,
        counts=[_counts(name, using) for name in names(using)],
        oldest=list(_waiting(using).order_by("status_changed_at").defer(*HEAVY)[:_OLDEST]),
        failures=failures,
        failures_are_capped=capped,
        workers=workers.seen(using, now),
        last_tick=ticks.order_by("-seen_at").values_list("seen_at", flat=True).first(),
        no_worker=workers.missing(using, now),
    )


def names(using: str) -> list[str]:
    """The workflows that code here or any row knows, by name."""
    return sorted({*registry.names(), *_stored_names(using)})


def _stored_names(using: str) -> Iterator[str]:
    """From one name to the next along the index: DISTINCT would read all of it."""
    rows = WorkflowInstance.objects.using(using).order_by("workflow_name")
    name = rows.values_list("workflow_name", flat=True).first()
    for _ in range(_MOST_NAMES):
        if name is None:
            return
        yield name
        name = rows.filter(workflow_name__gt=name).values_list("workflow_name", flat=True).first()


def _counts(name: str, using: str) -> Counts:
    rows = WorkflowInstance.objects.using(using).filter(workflow_name=name)
    label = str(registry.newest(name).label) if name in registry.names() else name
    return Counts(name, label, {status: count_of(rows.filter(status=status)) for status in Status})


def _waiting(using: str) -> InstanceQuerySet:
    return WorkflowInstance.objects.using(using).filter(status=Status.AWAITING)


def _failures(using: str, now: datetime) -> tuple[list[Failures], bool]:
    failed = WorkflowEvent.objects.using(using).filter(kind=EventKind.STEP_FAILED, created_at__gte=now - LATELY)
    found = failed.order_by("-created_at").values_list("instance__workflow_name", "step", "data__final")[:CAP]
    attempts: Counter[tuple[str, str]] = Counter()
    for_good: Counter[tuple[str, str]] = Counter()
    for name, step, final in found:
        attempts[name, step] += 1
        for_good[name, step] += bool(final)
    told = [Failures(name, step, count, for_good[name, step]) for (name, step), count in attempts.most_common()]
    return told, attempts.total() >= CAP
