from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock
from workflow_engine.inspection import as_json
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.filters import add_filters, number_of, selection
from workflow_engine.management.listing import HEAVY, instance_table


class Command(WorkflowCommand):
    summary = gettext_lazy("List instances: which, where, since when, what they wait for or what went wrong.")

    def add_options(self, parser: CommandParser) -> None:
        add_filters(parser)
        parser.add_argument("--limit", type=int, default=50, metavar="N", help=_("At most so many (default: 50)."))
        parser.add_argument("--oldest-first", action="store_true", help=_("Instead of the newest first."))

    def run(self, options: dict[str, Any]) -> None:
        chosen, limit = selection(options, self.using), number_of(options, "limit") or 0
        rows = chosen.rows(self.using).defer(*HEAVY).order_by("pk" if options["oldest_first"] else "-pk")
        # One more than is shown tells that there are more, without counting all of them.
        found = list(rows[: limit + 1])
        if self.as_json:
            self.print_json([as_json.summary(row) for row in found[:limit]])
        elif not found:
            self.note(_("No instance matches."))
        else:
            for line in instance_table(found[:limit], clock.now(self.using)):
                self.stdout.write(line)
        if len(found) > limit:
            self.note(_("There are more than these %(limit)d; --limit shows more.") % {"limit": limit})
