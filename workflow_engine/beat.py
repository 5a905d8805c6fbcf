"""The periodic tasks in django-celery-beat: what there should be, what there is, and how the one becomes the other.

Never installed by a migration: whether and where beat runs is the deployment's matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import transaction

from workflow_engine import conf
from workflow_engine.exceptions import WorkflowEngineError

TICK = "workflow_engine.tick"
PRUNE = "workflow_engine.prune"

_APP = "django_celery_beat"
_PRUNE_EVERY = timedelta(days=1)
_EXPIRES = timedelta(hours=1)
"""After which a tick that nobody took is dropped: enough gather while no worker runs. Not sooner: behind a backlog that
is longer than an interval each one would be dropped, so that none would run.
"""


class BeatMissingError(WorkflowEngineError):
    """django-celery-beat is not part of this project."""

    def __init__(self) -> None:
        super().__init__(
            "django-celery-beat is not among INSTALLED_APPS. Install it (pip install 'django-workflow-steps[beat]'),"
            " add 'django_celery_beat' and migrate; or run this beside the workers instead: python manage.py"
            " workflow_tick --loop"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """One periodic task as it should be."""

    name: str
    task: str
    using: str
    every: timedelta
    queue: str = ""
    """"" leaves the queue to Celery's routes, or to whoever has set one by hand."""

    @property
    def fields(self) -> dict[str, Any]:
        """The columns of its row, without the schedule."""
        queue = {"queue": self.queue} if self.queue else {}
        return {
            "task": self.task,
            "args": "[]",
            "kwargs": json.dumps({"using": self.using}),
            "expire_seconds": int(max(self.every, _EXPIRES).total_seconds()),
            "one_off": False,
            **queue,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How a periodic task stands. `state` is right, missing, different or disabled.

    `differences` names the columns that are not as they should be: (is, should be).
    """

    wanted: Periodic
    state: str
    differences: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def is_installed() -> bool:
    """Whether django-celery-beat is part of this project."""
    return apps.is_installed(_APP)


def wanted(using: str, *, queue: str = "") -> list[Periodic]:
    """What should run for the instances of one database."""
    suffix = "" if using == "default" else f" of {using}"
    tick = conf.current().duration("TICK_INTERVAL")
    return [
        Periodic(name=f"{TICK}{suffix}", task=TICK, using=using, every=tick, queue=queue),
        Periodic(name=f"{PRUNE}{suffix}", task=PRUNE, using=using, every=_PRUNE_EVERY, queue=queue),
    ]


def inspect(using: str, *, queue: str = "") -> list[Finding]:
    """How the periodic tasks stand. Nothing is changed.

    Raises:
        BeatMissingError: there is no place for them.
    """
    return [_find(periodic) for periodic in wanted(using, queue=queue)]


def install(using: str, *, queue: str = "") -> list[Finding]:
    """Create what is missing and mend what differs; one that is disabled stays so. Done again, it changes nothing.

    Returns:
        How they stood before.

    Raises:
        BeatMissingError: there is no place for them.
    """
    findings = inspect(using, queue=queue)
    for finding in findings:
        if finding.state == "missing" or finding.differences:
            _store(finding.wanted)
    return findings


def _find(periodic: Periodic) -> Finding:
    row = _model("PeriodicTask")._default_manager.filter(name=periodic.name).select_related("interval").first()
    if row is None:
        return Finding(wanted=periodic, state="missing")
    differences = dict(_differences(row, periodic))
    state = "different" if differences else "right"
    return Finding(wanted=periodic, state=state if row.enabled else "disabled", differences=differences)


def _differences(row: Any, periodic: Periodic) -> Iterator[tuple[str, tuple[Any, Any]]]:
    every = None if row.interval is None else timedelta(**{row.interval.period: row.interval.every})
    if every != periodic.every:
        yield "every", (every, periodic.every)
    for name, value in periodic.fields.items():
        if getattr(row, name) != value:
            yield name, (getattr(row, name), value)


def _store(periodic: Periodic) -> None:
    tasks = _model("PeriodicTask")._default_manager
    with transaction.atomic(using=tasks.db):
        schedule = {"interval": _interval(periodic.every), "crontab": None, "solar": None, "clocked": None}
        tasks.update_or_create(name=periodic.name, defaults={**periodic.fields, **schedule})


def _interval(every: timedelta) -> Any:
    """The schedule of that length; there may be several, and one that others use is not changed."""
    intervals = _model("IntervalSchedule")._default_manager
    seconds = every.total_seconds()
    if seconds.is_integer():
        values = {"every": int(seconds), "period": "seconds"}
    else:
        values = {"every": every // timedelta(microseconds=1), "period": "microseconds"}
    return intervals.filter(**values).first() or intervals.create(**values)


def _model(name: str) -> Any:
    if not is_installed():
        raise BeatMissingError
    return apps.get_model(_APP, name)
