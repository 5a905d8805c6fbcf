from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from workflow_engine import engine
from workflow_engine.management.bulk import BulkCommand, Words
from workflow_engine.models import WorkflowSignal


class Command(BulkCommand):
    summary = gettext_lazy("Cancel instances: what was done is undone, then they end.")
    verb = "cancel"

    def add_options(self, parser: CommandParser) -> None:
        super().add_options(parser)
        parser.add_argument("--no-undo", action="store_true", help=_("Leave what was done as it is."))

    def words(self, count: int) -> Words:
        told = {"count": count}
        return Words(
            ngettext("Cancel %(count)d instance?", "Cancel %(count)d instances?", count) % told,
            ngettext("Would cancel %(count)d instance.", "Would cancel %(count)d instances.", count) % told,
            ngettext("Cancelled %(count)d instance.", "Cancelled %(count)d instances.", count) % told,
        )

    def ask(self, instance_id: UUID, options: dict[str, Any]) -> WorkflowSignal:
        return engine.cancel(
            instance_id,
            reason=options["reason"],
            compensate=not options["no_undo"],
            actor=self.actor,
            using=self.using,
        )
