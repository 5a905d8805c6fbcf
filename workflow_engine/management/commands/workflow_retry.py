from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy, ngettext

from workflow_engine import engine
from workflow_engine.management.bulk import BulkCommand, Words
from workflow_engine.models import WorkflowSignal


class Command(BulkCommand):
    summary = gettext_lazy(
        "Let failed instances try again: the failed step, with fresh attempts, or undos that failed."
    )
    verb = "retry"

    def words(self, count: int) -> Words:
        told = {"count": count}
        return Words(
            ngettext("Retry %(count)d instance?", "Retry %(count)d instances?", count) % told,
            ngettext("Would retry %(count)d instance.", "Would retry %(count)d instances.", count) % told,
            ngettext("Retried %(count)d instance.", "Retried %(count)d instances.", count) % told,
        )

    def ask(self, instance_id: UUID, options: dict[str, Any]) -> WorkflowSignal:
        return engine.retry(instance_id, reason=options["reason"], actor=self.actor, using=self.using)
