"""Commands that ask something of one instance or of many: retry, cancel, pause, resume."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from workflow_engine import clock
from workflow_engine.domain.decisions.requests import why_not
from workflow_engine.engine import store
from workflow_engine.exceptions import InvalidStateError, WorkflowEngineError
from workflow_engine.inspection import as_json, finding, standing
from workflow_engine.inspection.selecting import ACCEPTING
from workflow_engine.inspection.wording import one_line
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.filters import add_filters, number_of, selection
from workflow_engine.management.listing import HEAVY, instance_table
from workflow_engine.models import WorkflowInstance, WorkflowSignal


class Words(NamedTuple):
    """What is said of so many instances: before, instead, and after."""

    question: str
    would: str
    done: str


class BulkCommand(WorkflowCommand):
    """Asks `verb` of one instance, named, or of all that the filters let through, after a confirmation."""

    takes_actor = True

    verb: str

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "reference",
            nargs="?",
            metavar="INSTANCE",
            help=_("An id, its beginning, an idempotency key, or a subject. Or say which with the filters below."),
        )
        add_filters(parser)
        parser.add_argument("--all", action="store_true", help=_("All it makes sense for, without a filter."))
        parser.add_argument("--limit", type=int, metavar="N", help=_("At most so many, the oldest first."))
        parser.add_argument("--dry-run", action="store_true", help=_("Only show which instances those are."))
        parser.add_argument("--no-input", action="store_true", help=_("Don't ask for a confirmation."))
        parser.add_argument("--no-advance", action="store_true", help=_("Leave what follows to a worker."))
        parser.add_argument("--reason", default="", metavar="TEXT", help=_("Why, for the history."))

    def words(self, count: int) -> Words:
        """The verb in sentences about `count` instances."""
        raise NotImplementedError

    def ask(self, instance_id: UUID, options: dict[str, Any]) -> WorkflowSignal:
        """Put the request into the instance's mailbox."""
        raise NotImplementedError

    def run(self, options: dict[str, Any]) -> None:
        chosen = selection(options, self.using)
        limit = number_of(options, "limit")
        if options["reference"]:
            if not chosen.is_everything or options["all"]:
                raise CommandError(_("Give an instance or filters, not both."))
            self._one(finding.find_one(options["reference"], self.using, ACCEPTING[self.verb]), options)
            return
        if chosen.is_everything and not options["all"]:
            raise CommandError(_("Say which: an instance, filters such as --workflow, or --all."))
        rows = chosen.rows(self.using).filter(ACCEPTING[self.verb]).order_by("pk")[:limit]
        if options["dry_run"]:
            self._preview(list(rows.defer(*HEAVY)))
        else:
            self._many(list(rows.values_list("pk", flat=True)), options)

    def _one(self, row: WorkflowInstance, options: dict[str, Any]) -> None:
        if options["dry_run"]:
            if reason := why_not(store.state_of(row), self.verb):
                raise InvalidStateError(row.pk, row.status, self.verb, reason)
            self._preview([row])
            return
        self.say_where(self._carry_out(row.pk, options))

    def _many(self, ids: list[UUID], options: dict[str, Any]) -> None:
        if ids and not options["no_input"]:
            confirm(self.words(len(ids)).question, self.note)
        results = [self._report(*result) for result in self._each(ids, options)]
        if self.as_json:
            self.print_json(results)
        else:
            self.stdout.write(self.words(sum("reason" not in result for result in results)).done)

    def _each(self, ids: list[UUID], options: dict[str, Any]) -> Iterator[tuple[UUID, WorkflowInstance | str]]:
        """The instance after its turn, or the reason why it was skipped: it may have moved on since it was chosen."""
        for instance_id in ids:
            try:
                yield instance_id, self._carry_out(instance_id, options)
            except WorkflowEngineError as error:
                yield instance_id, one_line(error)

    def _carry_out(self, instance_id: UUID, options: dict[str, Any]) -> WorkflowInstance:
        request = self.ask(instance_id, options)
        row = self.reload(instance_id) if options["no_advance"] else self.drive(instance_id)
        request.refresh_from_db(using=self.using)
        if request.state in {WorkflowSignal.State.REJECTED, WorkflowSignal.State.DISCARDED}:
            raise InvalidStateError(row.pk, row.status, self.verb, request.reason)
        return row

    def _report(self, instance_id: UUID, outcome: WorkflowInstance | str) -> dict[str, Any]:
        if isinstance(outcome, str):
            self.note(_("Skipped: %(reason)s") % {"reason": outcome})
            return {"id": instance_id, "reason": outcome}
        if not self.as_json:
            self.stdout.write(standing.summary(outcome, clock.now(self.using)))
        return as_json.summary(outcome)

    def _preview(self, rows: list[WorkflowInstance]) -> None:
        if self.as_json:
            self.print_json([as_json.summary(row) for row in rows])
            return
        for line in instance_table(rows, clock.now(self.using)) if rows else ():
            self.stdout.write(line)
        self.stdout.write(self.words(len(rows)).would)


def confirm(question: str, say: Callable[[str], None]) -> None:
    """Go on only after a yes.

    Raises:
        CommandError: the answer is another one, or nobody is there to give it.
    """
    if not sys.stdin.isatty():
        raise CommandError(_("%(question)s Nobody can be asked here: add --no-input.") % {"question": question})
    say(_("%(question)s [y/N]") % {"question": question})
    if sys.stdin.readline().strip().lower() not in {"y", "yes", _("y"), _("yes")}:
        raise CommandError(_("Nothing was done."))
