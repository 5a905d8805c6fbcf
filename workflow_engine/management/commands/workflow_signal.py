from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock, engine
from workflow_engine.exceptions import nearest
from workflow_engine.inspection import as_json, finding, standing
from workflow_engine.inspection.mail import told
from workflow_engine.inspection.selecting import ACCEPTING
from workflow_engine.management.arguments import parse_data
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.models import WorkflowInstance, WorkflowSignal


class Command(WorkflowCommand):
    summary = gettext_lazy("Send a signal to an instance, or to every live instance of a subject.")
    takes_actor = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "reference",
            metavar="INSTANCE",
            help=_(
                "An id, its beginning, an idempotency key, or a subject like shop.order:42 for all of its instances."
            ),
        )
        parser.add_argument("name", metavar="SIGNAL", help=_("What happened, e.g. payment_succeeded."))
        parser.add_argument("--data", metavar="JSON", help=_("JSON, @file, or - for standard input."))
        parser.add_argument(
            "--key", metavar="TEXT", help=_("Idempotency key: sent again with it, nothing happens twice.")
        )
        parser.add_argument("--no-advance", action="store_true", help=_("Leave what follows to a worker."))

    def run(self, options: dict[str, Any]) -> None:
        results = []
        for item in self._send(options):
            row = self.reload(item.instance_id) if options["no_advance"] else self.drive(item.instance_id)
            item.refresh_from_db(using=self.using)
            self._report(item, row)
            results.append({"signal": as_json.signal(item), "instance": as_json.summary(row)})
        if self.as_json:
            self.print_json(results)

    def _send(self, options: dict[str, Any]) -> list[WorkflowSignal]:
        reference, name = options["reference"], options["name"]
        data = parse_data(options["data"], "--data")
        by_subject = finding.means_subject(reference, self.using)
        if by_subject is not None:
            return engine.signal_subject(
                by_subject, name, data, idempotency_key=options["key"], actor=self.actor, using=self.using
            )
        row = finding.find_one(reference, self.using, ACCEPTING["signal"])
        return [engine.signal(row, name, data, idempotency_key=options["key"], actor=self.actor, using=self.using)]

    def _report(self, item: WorkflowSignal, row: WorkflowInstance) -> None:
        if item.state == WorkflowSignal.State.REJECTED:
            raise CommandError(told(item))
        if not self.as_json:
            self.stdout.write(told(item))
            self.stdout.write(standing.summary(row, clock.now(self.using)))
        misspelt = item.name not in row.awaiting_signals and get_close_matches(item.name, row.awaiting_signals)
        if item.state == WorkflowSignal.State.BUFFERED and misspelt:
            self.note(nearest(item.name, row.awaiting_signals))
