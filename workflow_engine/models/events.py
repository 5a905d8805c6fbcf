"""The history."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workflow_engine.models.instances import WorkflowInstance


class WorkflowEvent(models.Model):
    """One thing that happened to an instance. Append-only; folding all of them gives the row."""

    id = models.BigAutoField(primary_key=True)
    instance = models.ForeignKey(
        WorkflowInstance, models.CASCADE, related_name="events", db_constraint=False, verbose_name=_("instance")
    )
    seq = models.PositiveBigIntegerField(_("number"))
    kind = models.CharField(_("kind"), max_length=40)
    step = models.CharField(_("step"), max_length=100, blank=True, default="")
    visit = models.PositiveIntegerField(_("visit"), default=0)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    actor = models.CharField(_("actor"), max_length=255, blank=True, default="")
    trigger = models.CharField(_("trigger"), max_length=100, blank=True, default="")
    data = models.JSONField(_("data"), default=dict)
    created_at = models.DateTimeField(_("created at"))
    duration = models.DurationField(_("duration"), null=True)

    class Meta:
        db_table = "workflow_events"
        verbose_name = _("workflow event")
        verbose_name_plural = _("workflow events")
        ordering = ("instance", "seq")
        constraints = (models.UniqueConstraint(fields=("instance", "seq"), name="workflow_events_one_per_number"),)
        indexes = (models.Index(fields=("kind", "created_at"), name="workflow_events_kind"),)

    def __str__(self) -> str:
        return f"{self.seq}. {self.kind}"
