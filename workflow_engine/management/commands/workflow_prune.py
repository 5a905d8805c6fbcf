from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from workflow_engine import conf
from workflow_engine.inspection.times import length
from workflow_engine.management.arguments import parse_duration
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.bulk import confirm
from workflow_engine.management.filters import number_of
from workflow_engine.prune import prunable, prune


class Command(WorkflowCommand):
    summary = gettext_lazy("Delete instances that ended long ago, with their history and mailbox.")

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            metavar="TIME",
            help=_("Ended longer ago than this, e.g. 30d. Default: the setting RETENTION."),
        )
        parser.add_argument(
            "--with-failed", action="store_true", help=_("Failed ones too: after that they can't be retried.")
        )
        parser.add_argument("--limit", type=int, metavar="N", help=_("At most so many, the oldest first."))
        parser.add_argument("--dry-run", action="store_true", help=_("Only count them."))
        parser.add_argument("--no-input", action="store_true", help=_("Don't ask for a confirmation."))

    def run(self, options: dict[str, Any]) -> None:
        text, limit = options["older_than"], number_of(options, "limit")
        older_than = conf.current().duration("RETENTION") if text is None else parse_duration(text, "--older-than")
        rows = prunable(self.using, older_than, with_failed=options["with_failed"])
        count = rows.count() if limit is None else min(rows.count(), limit)
        told = {"count": count, "length": length(older_than)}
        if options["dry_run"]:
            would = ngettext(
                "Would delete %(count)d instance that ended more than %(length)s ago.",
                "Would delete %(count)d instances that ended more than %(length)s ago.",
                count,
            )
            self._say({"instances": count}, would % told)
            return
        if count and not options["no_input"]:
            question = ngettext(
                "Delete %(count)d instance that ended more than %(length)s ago?",
                "Delete %(count)d instances that ended more than %(length)s ago?",
                count,
            )
            confirm(question % told, self.note)
        pruned = asdict(prune(rows, limit=limit))
        self._say(pruned, _("Deleted %(instances)d instances, %(events)d events and %(signals)d signals.") % pruned)

    def _say(self, counts: dict[str, int], text: str) -> None:
        if self.as_json:
            self.print_json(counts)
        else:
            self.stdout.write(text)
