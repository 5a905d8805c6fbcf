from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock
from workflow_engine.inspection import as_json, finding
from workflow_engine.inspection.account import Account, account_of
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.filters import number_of
from workflow_engine.management.listing import instance_table
from workflow_engine.management.page import page
from workflow_engine.models import WorkflowInstance


class Command(WorkflowCommand):
    summary = gettext_lazy(
        "Show one instance: where it is, since when, what it waits for, what went wrong, what comes next, what happened"
        " so far. With --traceback, failures with their whole traceback."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "reference",
            metavar="INSTANCE",
            help=_("An id, its beginning (4 or more digits), an idempotency key, or a subject like shop.order:42."),
        )
        parser.add_argument("--last", type=int, default=10, metavar="N", help=_("So many events (default: 10)."))
        parser.add_argument("--all", action="store_true", help=_("All events."))

    def run(self, options: dict[str, Any]) -> None:
        last = number_of(options, "last", lowest=0)
        rows = finding.find(options["reference"], self.using)
        if not rows:
            raise finding.NoMatchError(options["reference"], self.using)
        if len(rows) > 1:
            self._list(rows)
            return
        account = account_of(rows[0], self.using, last=None if options["all"] else last)
        if self.as_json:
            self.print_json(_as_json(account))
            return
        for line in page(account, self.style, traceback=options["traceback"]):
            self.stdout.write(line)

    def _list(self, rows: list[WorkflowInstance]) -> None:
        if self.as_json:
            self.print_json([as_json.summary(row) for row in rows])
            return
        for line in instance_table(rows, clock.now(self.using)):
            self.stdout.write(line)
        self.note(_("%(count)d instances match; give the id of one to see it whole.") % {"count": len(rows)})


def _as_json(account: Account) -> dict[str, Any]:
    why = account.why
    return {
        **as_json.instance(account.row),
        "now": account.now,
        "since": why.since,
        "waits_for": why.waits_for,
        "until": why.until,
        "notes": why.notes,
        "remaining_steps": why.remaining,
        "events": [as_json.event(event) for event in account.events],
        "signals": [as_json.signal(signal) for signal in account.mailbox],
        "no_worker": account.no_worker,
    }
