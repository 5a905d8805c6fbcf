"""Instances by what people know of them: their status, workflow, step, subject, how long they have been like that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Q

from workflow_engine import clock
from workflow_engine.domain.registry import registry
from workflow_engine.domain.statuses import LIVE, Status
from workflow_engine.exceptions import UnknownWorkflowError
from workflow_engine.models import WorkflowInstance
from workflow_engine.models.querysets import InstanceQuerySet

ACCEPTING: Mapping[str, Q] = MappingProxyType(
    {
        "signal": Q(status__in=sorted(LIVE)),
        "advance": Q(status__in=sorted(LIVE)),
        "retry": Q(status=Status.FAILED),
        "cancel": Q(status__in=sorted(LIVE - {Status.COMPENSATING}), cancel_requested__isnull=True),
        "pause": Q(status__in=sorted(LIVE), paused=False),
        "resume": Q(status__in=sorted(LIVE), paused=True),
    }
)
"""Which instances a verb makes sense for, as a condition on rows. The engine decides, under the lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A filter; what is empty is not asked for. All that is asked for must hold.

    `stuck_longer_than`: live, not paused, and in the same status for longer than that. `failed_since`: failed, and not
    earlier than that moment.
    """

    statuses: frozenset[Status] = frozenset()
    workflow: str = ""
    step: str = ""
    subject: tuple[str, str] | None = None
    awaiting: str = ""
    stuck_longer_than: timedelta | None = None
    failed_since: datetime | None = None
    paused: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether nothing is asked for."""
        return self == Selection()

    def rows(self, using: str) -> InstanceQuerySet:
        """The instances, in no particular order.

        Raises:
            UnknownWorkflowError: neither code nor any instance has a workflow of that name: a slip of the pen.
        """
        rows: InstanceQuerySet = WorkflowInstance.objects.using(using)
        if self.workflow:
            check_workflow(self.workflow, using)
            rows = rows.filter(workflow_name=self.workflow)
        if self.statuses:
            rows = rows.filter(status__in=sorted(self.statuses))
        if self.step:
            rows = rows.filter(current_step=self.step)
        if self.subject:
            rows = rows.for_subject(self.subject)
        if self.awaiting:
            rows = rows.awaiting(self.awaiting)
        if self.paused:
            rows = rows.filter(paused=True)
        if self.failed_since is not None:
            rows = rows.filter(status=Status.FAILED, finished_at__gte=self.failed_since)
        if self.stuck_longer_than is not None:
            since = clock.now(using) - self.stuck_longer_than
            rows = rows.filter(status__in=sorted(LIVE), paused=False, status_changed_at__lt=since)
        return rows


def check_workflow(name: str, using: str) -> None:
    """Refuse a name that nothing has.

    Raises:
        UnknownWorkflowError: it says what is known.
    """
    if name in registry.names() or WorkflowInstance.objects.using(using).filter(workflow_name=name).exists():
        return
    raise UnknownWorkflowError(name, registry.names())
