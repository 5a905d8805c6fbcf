"""The mailbox: everything that comes to an instance from outside."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from workflow_engine.models.indexes import PartialWherePossible
from workflow_engine.models.instances import WorkflowInstance
from workflow_engine.models.querysets import SignalQuerySet


class WorkflowSignal(models.Model):
    """A signal or a control request, from the moment its sender commits. Its id is the order of the mailbox.

    `pending` (nobody looked yet) becomes `consumed`, `buffered` (kept for a later await) and then consumed,
    `discarded` (the instance had ended) or `rejected` (a request that made no sense any more).
    """

    class Kind(models.TextChoices):
        """What the row asks for."""

        SIGNAL = "signal", _("signal")
        CANCEL = "cancel", _("cancel")
        PAUSE = "pause", _("pause")
        RESUME = "resume", _("resume")
        RETRY = "retry", _("retry")

    class State(models.TextChoices):
        """What became of it."""

        PENDING = "pending", _("pending")
        BUFFERED = "buffered", _("buffered")
        CONSUMED = "consumed", _("consumed")
        DISCARDED = "discarded", _("discarded")
        REJECTED = "rejected", _("rejected")

    id = models.BigAutoField(primary_key=True)
    # No constraint in the database: its check would wait behind the row lock of a running step on MySQL and MariaDB.
    instance = models.ForeignKey(
        WorkflowInstance, models.CASCADE, related_name="signals", db_constraint=False, verbose_name=_("instance")
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.SIGNAL)
    name = models.CharField(_("name"), max_length=200)
    data = models.JSONField(_("data"), null=True, default=None)
    actor = models.CharField(_("actor"), max_length=255, blank=True, default="")
    key_hash = models.CharField(_("key hash"), max_length=64, null=True, unique=True, editable=False)  # noqa: DJ001
    idempotency_key = models.CharField(_("idempotency key"), max_length=255, null=True)  # noqa: DJ001
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.PENDING)
    reason = models.CharField(_("reason"), max_length=255, blank=True, default="")
    received_at = models.DateTimeField(_("received at"))
    consumed_at = models.DateTimeField(_("consumed at"), null=True)
    consumed_step = models.CharField(_("consumed by step"), max_length=100, blank=True, default="")
    consumed_visit = models.PositiveIntegerField(_("consumed by visit"), null=True)

    objects = SignalQuerySet.as_manager()

    class Meta:
        db_table = "workflow_signals"
        verbose_name = _("workflow signal")
        verbose_name_plural = _("workflow signals")
        indexes = (
            models.Index(fields=("instance", "state", "id"), name="workflow_signals_mailbox"),
            PartialWherePossible("state", "received_at", where=Q(state="pending"), name="workflow_signals_pending"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(state="consumed", consumed_at__isnull=False)
                | (~Q(state="consumed") & Q(consumed_at__isnull=True)),
                name="workflow_signals_consumed_at",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"
