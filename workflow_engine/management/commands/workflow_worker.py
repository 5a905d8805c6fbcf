from __future__ import annotations

import os
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine.domain.registry import registry
from workflow_engine.engine import Driven
from workflow_engine.inspection import standing
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.filters import number_of
from workflow_engine.management.stopping import stopped_by_signals
from workflow_engine.models import WorkflowInstance
from workflow_engine.worker import Worker
from workflow_engine.worker.processes import Processes


class Command(WorkflowCommand):
    summary = gettext_lazy(
        "Work on due instances until told to end (Ctrl-C or SIGTERM), which happens after the current step."
    )
    # A worker connects to its database anyway, so that is checked too.
    requires_system_checks = ["workflow_engine", "database"]
    speaks_json = False

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--burst", action="store_true", help=_("End when nothing is due."))
        parser.add_argument(
            "--processes", type=int, default=1, metavar="N", help=_("So many at once; one that dies is replaced.")
        )

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        """Only its own database is asked."""
        return {**super().get_check_kwargs(options), "databases": [options["database"]]}

    def run(self, options: dict[str, Any]) -> None:
        count = number_of(options, "processes") or 1
        self._verbosity = options["verbosity"]
        # Missing tables are told here, once, and not by each of many processes.
        WorkflowInstance.objects.using(self.using).exists()
        if count > 1:
            processes = Processes(count, self.using, burst=options["burst"], say=self._say, verbosity=self._verbosity)
            with stopped_by_signals(processes.stop):
                self._say_known()
                processes.run()
            return
        worker = Worker(self.using, report=self._report)
        with stopped_by_signals(worker.stop):
            self._say_known()
            driven = worker.run(burst=options["burst"])
        self._say(_("Worker %(pid)d ended; instances driven: %(count)d.") % {"pid": os.getpid(), "count": driven})

    def _say_known(self) -> None:
        known = ", ".join(f"{workflow.name} {workflow.version}" for workflow in registry)
        told = {"pid": os.getpid(), "using": self.using, "known": known or _("no workflow")}
        self._say(_("Worker %(pid)d works on database '%(using)s': %(known)s. Ctrl-C ends it.") % told)

    def _report(self, instance_id: UUID, driven: Driven) -> None:
        if not self._verbosity or not driven.turns:
            return
        row = WorkflowInstance.objects.using(self.using).filter(pk=instance_id).first()
        if row is not None:
            told = {"workflow": row.workflow_name, "id": row.pk, "headline": standing.headline(row)}
            self._say(_("%(workflow)s %(id)s: %(headline)s") % told)

    def _say(self, text: str) -> None:
        if self._verbosity:
            self.stdout.write(text)
            self.stdout.flush()
