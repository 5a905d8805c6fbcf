from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock, engine
from workflow_engine.inspection import finding
from workflow_engine.management.arguments import parse_data
from workflow_engine.management.base import WorkflowCommand


class Command(WorkflowCommand):
    summary = gettext_lazy("Start a workflow, and let it run until it waits for something.")
    takes_actor = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", metavar="WORKFLOW", help=_("Its name; workflow_list shows which there are."))
        parser.add_argument("--subject", metavar="MODEL:KEY", help=_("What it is about, e.g. shop.order:42."))
        parser.add_argument(
            "--data",
            metavar="JSON",
            help=_("The context it starts with: a JSON object, @file, or - for standard input."),
        )
        parser.add_argument("--key", metavar="TEXT", help=_("Idempotency key: a second start with it changes nothing."))
        parser.add_argument("--tenant", default="", metavar="TEXT", help=_("Keeps keys of several customers apart."))
        parser.add_argument("--queue", metavar="NAME", help=_("Instead of the workflow's own."))
        parser.add_argument(
            "--workflow-version", type=int, metavar="N", help=_("Of the workflow. Default: the newest.")
        )
        parser.add_argument("--no-advance", action="store_true", help=_("Leave its steps to a worker."))

    def run(self, options: dict[str, Any]) -> None:
        subject = None
        if options["subject"]:
            subject = finding.subject_of(options["subject"])
            finding.check_subject_exists(subject)
        before = clock.now(self.using)
        row = engine.start(
            options["workflow"],
            subject=subject,
            context=parse_data(options["data"], "--data"),
            idempotency_key=options["key"],
            actor=self.actor,
            tenant=options["tenant"],
            version=options["workflow_version"],
            queue=options["queue"],
            using=self.using,
        )
        if row.created_at < before:
            self.note(
                _("The key %(key)s has this instance already; nothing was started.") % {"key": repr(options["key"])}
            )
            row = self.reload(row.pk)
        elif not options["no_advance"]:
            row = self.drive(row.pk)
        self.say_where(row)
