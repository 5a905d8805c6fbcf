"""Processes that work on instances."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workflow_engine.models.identifiers import uuid7


class WorkflowWorker(models.Model):
    """A process that reported itself: for health, and for "no worker is running"."""

    class Kind(models.TextChoices):
        """What the process does."""

        WORKER = "worker", _("embedded worker")
        TICK = "tick", _("tick")
        CELERY = "celery", _("Celery worker")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices)
    host = models.CharField(_("host"), max_length=255)
    pid = models.PositiveIntegerField(_("process id"))
    knows = models.JSONField(_("workflows it can run"), default=list)
    started_at = models.DateTimeField(_("started at"))
    seen_at = models.DateTimeField(_("last seen at"))

    class Meta:
        db_table = "workflow_workers"
        verbose_name = _("workflow worker")
        verbose_name_plural = _("workflow workers")
        indexes = (models.Index(fields=("kind", "seen_at"), name="workflow_workers_seen"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.host}:{self.pid}"
