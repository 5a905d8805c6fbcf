from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy, ngettext

from workflow_engine import engine
from workflow_engine.management.bulk import BulkCommand, Words
from workflow_engine.models import WorkflowSignal


class Command(BulkCommand):
    summary = gettext_lazy("Let paused instances go on where they stood.")
    verb = "resume"

    def words(self, count: int) -> Words:
        told = {"count": count}
        return Words(
            ngettext("Resume %(count)d instance?", "Resume %(count)d instances?", count) % told,
            ngettext("Would resume %(count)d instance.", "Would resume %(count)d instances.", count) % told,
            ngettext("Resumed %(count)d instance.", "Resumed %(count)d instances.", count) % told,
        )

    def ask(self, instance_id: UUID, options: dict[str, Any]) -> WorkflowSignal:
        return engine.resume(instance_id, reason=options["reason"], actor=self.actor, using=self.using)
