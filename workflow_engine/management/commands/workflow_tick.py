from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.db import DatabaseError, InterfaceError, connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock, conf
from workflow_engine.dispatch import dispatcher
from workflow_engine.engine.infrastructure import is_infrastructure
from workflow_engine.inspection.wording import one_line
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.stopping import stopped_by_signals
from workflow_engine.tick import Ticked, tick

_TROUBLE_LIMIT = 30


class Command(WorkflowCommand):
    summary = gettext_lazy("Hand out again what is due and nobody works on; any number of these may run at once.")

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--loop", action="store_true", help=_("Again and again, every TICK_INTERVAL, until told to end.")
        )

    def run(self, options: dict[str, Any]) -> None:
        if not dispatcher().pushes:
            self._refuse(options)
        elif options["loop"]:
            self._loop(options["verbosity"])
        else:
            self._report(tick(self.using))

    def _refuse(self, options: dict[str, Any]) -> None:
        """Once is harmless; a loop that never does anything is somebody's mistake."""
        text = _(
            "The dispatcher '%(dispatcher)s' hands nothing out, so there is nothing to tick: workflow_worker finds what"
            " is due by itself."
        )
        text %= {"dispatcher": conf.current().DISPATCHER}
        if options["loop"]:
            raise CommandError(text)
        self.note(text)

    def _loop(self, verbosity: int) -> None:
        stopping, trouble = threading.Event(), 0
        with stopped_by_signals(stopping.set):
            while not stopping.is_set():
                began = clock.monotonic()
                connections[self.using].close_if_unusable_or_obsolete()
                try:
                    ticked = tick(self.using)
                    trouble = 0
                except (DatabaseError, InterfaceError) as error:
                    trouble += 1
                    self._endure(error, trouble)
                else:
                    if verbosity > 1 or any(asdict(ticked).values()):
                        self._report(ticked)
                # A tick looks ahead by an interval from its beginning.
                interval = conf.current().duration("TICK_INTERVAL").total_seconds()
                stopping.wait(max(0.0, interval - (clock.monotonic() - began)))

    def _endure(self, error: Exception, times: int) -> None:
        """A database that is away for a while is waited for; for how long is the supervisor's matter."""
        if not is_infrastructure(error) or times >= _TROUBLE_LIMIT:
            raise error
        connections[self.using].close()
        self.note(_("The database has trouble, the next tick tries again: %(error)s") % {"error": one_line(error)})

    def _report(self, ticked: Ticked) -> None:
        counts = asdict(ticked)
        if self.as_json:
            self.print_json(counts)
        else:
            self.stdout.write(_("Handed out %(handed_out)d, woken %(woken)d, not handed out %(failed)d.") % counts)
        self.stdout.flush()
