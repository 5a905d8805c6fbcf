from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy, ngettext

from workflow_engine import engine
from workflow_engine.management.bulk import BulkCommand, Words
from workflow_engine.models import WorkflowSignal


class Command(BulkCommand):
    summary = gettext_lazy("Pause instances: no step starts until they are resumed.")
    verb = "pause"

    def words(self, count: int) -> Words:
        told = {"count": count}
        return Words(
            ngettext("Pause %(count)d instance?", "Pause %(count)d instances?", count) % told,
            ngettext("Would pause %(count)d instance.", "Would pause %(count)d instances.", count) % told,
            ngettext("Paused %(count)d instance.", "Paused %(count)d instances.", count) % told,
        )

    def ask(self, instance_id: UUID, options: dict[str, Any]) -> WorkflowSignal:
        return engine.pause(instance_id, reason=options["reason"], actor=self.actor, using=self.using)
