from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import beat, conf
from workflow_engine.dispatch import dispatcher
from workflow_engine.inspection.times import length
from workflow_engine.management.base import WorkflowCommand

_DONE = {
    "missing": gettext_lazy("%(name)s: installed, every %(every)s."),
    "different": gettext_lazy("%(name)s: changed (%(columns)s), every %(every)s."),
    "disabled": gettext_lazy("%(name)s: every %(every)s, but it is disabled. Enable it in the admin."),
    "right": gettext_lazy("%(name)s: as it should be, every %(every)s."),
}
_FOUND = {
    **_DONE,
    "missing": gettext_lazy("%(name)s: missing."),
    "different": gettext_lazy("%(name)s: differs (%(columns)s)."),
    "disabled": gettext_lazy("%(name)s: disabled. Enable it in the admin."),
}


class Command(WorkflowCommand):
    summary = gettext_lazy("Install or update the periodic tasks in django-celery-beat; or check them.")

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help=_("Change nothing; exit code 1 if something is not as it should be.")
        )
        parser.add_argument(
            "--queue",
            default="",
            help=_("The queue they are sent to. One of their own keeps them from waiting behind a backlog of work."),
        )

    def run(self, options: dict[str, Any]) -> None:
        act = beat.inspect if options["check"] else beat.install
        findings = act(self.using, queue=options["queue"])
        if self.as_json:
            self.print_json([_as_json(finding) for finding in findings])
        else:
            self._tell(findings, _FOUND if options["check"] else _DONE)
        if not dispatcher().pushes:
            told = {"dispatcher": conf.current().DISPATCHER}
            self.note(_("The dispatcher '%(dispatcher)s' hands nothing out, so tick will find nothing to do.") % told)
        if options["check"] and any(finding.state != "right" for finding in findings):
            raise CommandError(_("The periodic tasks are not as they should be. Run: python manage.py workflow_beat"))

    def _tell(self, findings: list[beat.Finding], sentences: dict[str, Any]) -> None:
        for finding in findings:
            told = {
                "name": finding.wanted.name,
                "every": length(finding.wanted.every),
                "columns": ", ".join(finding.differences),
            }
            self.stdout.write(str(sentences[finding.state]) % told)


def _as_json(finding: beat.Finding) -> dict[str, Any]:
    return {
        "name": finding.wanted.name,
        "task": finding.wanted.task,
        "every": finding.wanted.every.total_seconds(),
        "state": finding.state,
        "differences": {name: {"is": is_, "should_be": should} for name, (is_, should) in finding.differences.items()},
    }
