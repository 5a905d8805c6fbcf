"""One run of a workflow."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from workflow_engine.domain.statuses import TERMINAL, Status
from workflow_engine.models.identifiers import uuid7
from workflow_engine.models.indexes import PartialWherePossible
from workflow_engine.models.querysets import InstanceQuerySet

STATUS_LABELS = {
    Status.PENDING: _("pending"),
    Status.IN_PROGRESS: _("in progress"),
    Status.AWAITING: _("awaiting"),
    Status.SLEEPING: _("sleeping"),
    Status.COMPENSATING: _("compensating"),
    Status.COMPLETED: _("completed"),
    Status.FAILED: _("failed"),
    Status.COMPENSATED: _("compensated"),
    Status.CANCELLED: _("cancelled"),
}

# Plain strings, so that migrations don't depend on a class of this package.
_CHOICES = [(status.value, label) for status, label in STATUS_LABELS.items()]
_COMPENSATING = Status.COMPENSATING.value
_ENDED = Q(status__in=sorted(status.value for status in TERMINAL))


class WorkflowInstance(models.Model):
    """One run of a workflow: where it stands, and everything needed to go on after any crash.

    Written by the engine alone. Journalled columns equal the fold of the instance's events; poll_at, suspect,
    recoveries and a lease's renewed due_at are bookkeeping.
    """

    id = models.UUIDField(_("id"), primary_key=True, default=uuid7, editable=False)
    workflow_name = models.CharField(_("workflow"), max_length=100)
    definition_version = models.PositiveIntegerField(_("definition version"))
    step_sequence = models.JSONField(_("step sequence"), help_text=_("the steps as they were when it started"))
    step_index = models.PositiveIntegerField(_("step index"), default=0)
    current_step = models.CharField(_("current step"), max_length=100)
    visit = models.PositiveIntegerField(_("visit"), default=1, help_text=_("counts every entry of a step"))
    visits_since_park = models.PositiveIntegerField(_("visits since it last waited"), default=1)
    status = models.CharField(_("status"), max_length=20, choices=_CHOICES, default=Status.PENDING.value)
    ends_as = models.CharField(_("ends as"), max_length=20, blank=True, default="")

    input = models.JSONField(_("input"), default=dict)
    context = models.JSONField(_("context"), default=dict)
    result = models.JSONField(_("result"), null=True, default=None)
    error = models.JSONField(_("error"), null=True, default=None)

    subject_type = models.CharField(_("subject type"), max_length=100, blank=True, default="")
    subject_id = models.CharField(_("subject id"), max_length=255, blank=True, default="")
    tenant = models.CharField(_("tenant"), max_length=100, blank=True, default="")
    run = models.PositiveIntegerField(_("run"), default=1)
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="children", db_constraint=False, verbose_name=_("parent")
    )
    parent_key = models.CharField(_("parent key"), max_length=255, blank=True, default="")
    queue = models.CharField(_("queue"), max_length=100, blank=True, default="")

    attempts = models.PositiveIntegerField(_("attempts"), default=0, help_text=_("of this visit"))
    recoveries = models.PositiveIntegerField(_("recoveries"), default=0, help_text=_("processes that died on it"))
    suspect = models.BooleanField(_("suspect"), default=False)
    awaiting_signals = models.JSONField(_("awaited signals"), default=list)
    handling = models.CharField(
        _("handling"), max_length=40, blank=True, default="", help_text=_("the handler a retry calls again")
    )
    due_at = models.DateTimeField(_("due at"), null=True, help_text=_("when it may be acted on"))
    deadline_at = models.DateTimeField(_("deadline"), null=True, help_text=_("when the wait times out"))
    poll_at = models.DateTimeField(_("poll at"), null=True, help_text=_("when the scheduler looks next"))
    lease_token = models.PositiveBigIntegerField(_("lease token"), default=0)
    lease_owner = models.CharField(_("lease owner"), max_length=100, blank=True, default="")
    cancel_requested = models.JSONField(_("cancel requested"), null=True, default=None)
    paused = models.BooleanField(_("paused"), default=False)
    compensation_stack = models.JSONField(_("compensation stack"), default=list)

    key_hash = models.CharField(_("key hash"), max_length=64, null=True, unique=True, editable=False)  # noqa: DJ001
    idempotency_key = models.CharField(_("idempotency key"), max_length=255, null=True)  # noqa: DJ001
    fingerprint = models.CharField(_("fingerprint of the start"), max_length=64, blank=True, default="")

    version = models.PositiveBigIntegerField(_("row version"), default=1)
    last_seq = models.PositiveBigIntegerField(_("last event"), default=0)
    created_at = models.DateTimeField(_("created at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    status_changed_at = models.DateTimeField(_("status changed at"))
    finished_at = models.DateTimeField(_("finished at"), null=True)

    objects = InstanceQuerySet.as_manager()

    class Meta:
        db_table = "workflow_instances"
        verbose_name = _("workflow instance")
        verbose_name_plural = _("workflow instances")
        permissions = (
            ("signal_workflowinstance", _("Can send signals to workflow instances")),
            ("retry_workflowinstance", _("Can retry failed workflow instances")),
            ("cancel_workflowinstance", _("Can cancel workflow instances")),
            ("pause_workflowinstance", _("Can pause workflow instances")),
            ("resume_workflowinstance", _("Can resume workflow instances")),
            ("advance_workflowinstance", _("Can advance workflow instances")),
        )
        indexes = (
            PartialWherePossible("poll_at", "id", where=Q(poll_at__isnull=False), name="workflow_instances_poll"),
            PartialWherePossible("finished_at", where=Q(finished_at__isnull=False), name="workflow_instances_finished"),
            models.Index(fields=("status", "status_changed_at"), name="workflow_instances_status"),
            models.Index(fields=("workflow_name", "status", "id"), name="workflow_instances_workflow"),
            models.Index(fields=("subject_type", "subject_id"), name="workflow_instances_subject"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(status__in=sorted(status.value for status in Status)),
                name="workflow_instances_status_known",
            ),
            models.CheckConstraint(
                condition=(_ENDED & Q(finished_at__isnull=False)) | (~_ENDED & Q(finished_at__isnull=True)),
                name="workflow_instances_finished_when_terminal",
            ),
            models.CheckConstraint(
                condition=Q(poll_at__isnull=True) | (~_ENDED & Q(paused=False)),
                name="workflow_instances_polled_while_it_may_run",
            ),
            models.CheckConstraint(
                condition=Q(status=Status.FAILED.value)
                | (Q(status=_COMPENSATING) & ~Q(ends_as=""))
                | (~Q(status=_COMPENSATING) & Q(ends_as="")),
                name="workflow_instances_ends_as_while_undoing",
            ),
            models.CheckConstraint(
                condition=Q(key_hash__isnull=True, idempotency_key__isnull=True)
                | Q(key_hash__isnull=False, idempotency_key__isnull=False),
                name="workflow_instances_key_with_hash",
            ),
            models.CheckConstraint(
                condition=Q(subject_type="", subject_id="") | (~Q(subject_type="") & ~Q(subject_id="")),
                name="workflow_instances_subject_whole",
            ),
            models.CheckConstraint(
                condition=Q(lease_owner="") | Q(due_at__isnull=False), name="workflow_instances_lease_ends"
            ),
        )

    def __str__(self) -> str:
        return f"{self.workflow_name} {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert a new row; a stored one is changed by the engine alone.

        Raises:
            TypeError: the row exists. A save() would overwrite what a worker wrote meanwhile.
        """
        if not self._state.adding:
            msg = "Workflow instances are changed by the engine alone: use engine.signal(), cancel(), retry() …"
            raise TypeError(msg)
        super().save(*args, **kwargs)

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended (a failed one can still be retried)."""
        return self.status in TERMINAL

    @property
    def subject_ref(self) -> tuple[str, str] | None:
        """The pair (type, id) of what it is about."""
        return (self.subject_type, self.subject_id) if self.subject_type else None

    @property
    def has_lease(self) -> bool:
        """Whether an activity or an undo is out there under a lease, as this row says. It ends at `due_at`."""
        return bool(self.lease_owner)
