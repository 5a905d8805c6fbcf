"""The questions asked of the tables, each written once."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.apps import apps
from django.db import connections, models
from django.db.models import F, Q, Value

from workflow_engine.domain.statuses import LIVE, Status

if TYPE_CHECKING:
    from workflow_engine.models import WorkflowInstance, WorkflowSignal  # noqa: F401 - named in the bases below

Subject = models.Model | tuple[str, Any]
"""What an instance is about: a model instance, or the pair (type, id), e.g. ("shop.order", "42")."""


def subject_reference(subject: Subject | None) -> tuple[str, str]:
    """The pair of strings that `subject_type` and `subject_id` store; ("", "") for None.

    Raises:
        ValueError: the model instance is not saved, so it has no key yet.
        TypeError: neither a model instance nor a pair.
    """
    match subject:
        case None:
            return "", ""
        case models.Model():
            if subject.pk is None:
                msg = f"The subject {type(subject).__name__} has no primary key yet. Save it before you use it."
                raise ValueError(msg)
            return subject._meta.label_lower, str(subject.pk)
        case (str() as subject_type, subject_id) if subject_type and str(subject_id):
            return _type_name(subject_type), str(subject_id)
    msg = f"subject must be a saved model instance or a pair like ('shop.order', 42), not {type(subject).__name__}."
    raise TypeError(msg)


def _type_name(text: str) -> str:
    """`shop.Order` as model instances are stored, `shop.order`; the name of anything else stays as it is written."""
    try:
        label: str = apps.get_model(text)._meta.label_lower
    except (LookupError, ValueError):
        return text
    return label


class _JSONListHas(models.Func):
    """SQLite's form of JSON containment for a list of strings."""

    template = "EXISTS (SELECT 1 FROM json_each(%(expressions)s))"
    arg_joiner = ") WHERE value = ("
    output_field = models.BooleanField()
    conditional = True


class InstanceQuerySet(models.QuerySet["WorkflowInstance"]):
    """Instances: `WorkflowInstance.objects.live().for_subject(order).awaiting("payment")`."""

    def live(self) -> InstanceQuerySet:
        """Those that have not ended."""
        return self.filter(status__in=sorted(LIVE))

    def for_subject(self, subject: Subject) -> InstanceQuerySet:
        """Those about this object, given itself or as a pair like ("shop.order", 42)."""
        subject_type, subject_id = subject_reference(subject)
        return self.filter(subject_type=subject_type, subject_id=subject_id)

    def awaiting(self, name: str | None = None) -> InstanceQuerySet:
        """Those that await the signal `name`, or any signal."""
        waiting = self.filter(status=Status.AWAITING)
        if name is None:
            return waiting
        if connections[self.db].features.supports_json_field_contains:
            return waiting.filter(awaiting_signals__contains=[name])
        return waiting.filter(_JSONListHas(F("awaiting_signals"), Value(name)))

    def due(self, now: datetime) -> InstanceQuerySet:
        """Those the scheduler should look at by `now`, the longest due first."""
        return self.filter(poll_at__lte=now).order_by("poll_at", "id")

    def after(self, poll_at: datetime, instance_id: UUID) -> InstanceQuerySet:
        """The rest of `due`, behind this row: keyset paging, so that a row nobody can take is stepped over."""
        return self.filter(Q(poll_at__gt=poll_at) | Q(poll_at=poll_at, id__gt=instance_id))


class SignalQuerySet(models.QuerySet["WorkflowSignal"]):
    """Rows of the mailbox."""

    def pending(self) -> SignalQuerySet:
        """Those nobody has looked at yet."""
        return self.filter(state="pending")

    def unconsumed(self) -> SignalQuerySet:
        """Those still to be acted on, oldest first: pending ones and those kept for a later await."""
        return self.filter(state__in=("pending", "buffered")).order_by("id")
