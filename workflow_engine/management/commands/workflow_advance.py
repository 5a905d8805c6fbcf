from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import engine
from workflow_engine.engine import Answer
from workflow_engine.exceptions import InvalidStateError
from workflow_engine.inspection import finding
from workflow_engine.inspection.selecting import ACCEPTING
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.models import WorkflowInstance


class Command(WorkflowCommand):
    summary = gettext_lazy("Take one turn of an instance now, in this process: at most one step.")

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "reference", metavar="INSTANCE", help=_("An id, its beginning, an idempotency key, or a subject.")
        )
        parser.add_argument("--drive", action="store_true", help=_("Go on until it waits for something."))

    def run(self, options: dict[str, Any]) -> None:
        row = finding.find_one(options["reference"], self.using, ACCEPTING["advance"])
        if options["drive"]:
            driven = engine.drive(row, using=self.using)
            self._report(row, driven.answer, acted=driven.turns > 0)
        else:
            answer = engine.advance(row, using=self.using).answer
            self._report(row, answer, acted=answer == Answer.ADVANCED)

    def _report(self, row: WorkflowInstance, answer: Answer, *, acted: bool) -> None:
        row = self.reload(row.pk)
        if not acted:
            self._say_why_not(row, answer)
        self.say_where(row)

    def _say_why_not(self, row: WorkflowInstance, answer: Answer) -> None:
        match answer:
            case Answer.ENDED:
                raise InvalidStateError(row.pk, row.status, "advance", _("It has ended."))
            case Answer.PAUSED:
                raise CommandError(_("It is paused. Resume it first: workflow_resume %(id)s") % {"id": row.pk})
            case Answer.NO_CODE:
                told = {"workflow": row.workflow_name, "version": row.definition_version}
                raise CommandError(
                    _("No code here can run it: %(workflow)s version %(version)d is not registered.") % told
                )
            case Answer.LOCKED:
                self.note(_("A worker has it in hand."))
            case _:
                self.note(_("Nothing is due."))
