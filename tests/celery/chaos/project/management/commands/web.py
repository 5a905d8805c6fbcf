"""The web process: starts instances, passes on signals and requests, like a webhook that is called twice, early and
late; and somebody looks after what is paused or has failed.

What it has done it knows from the ledger, so that it may be killed and started again; the last calls are then made once
more, for a client that got no answer repeats its call. Trouble of the database is answered by another try with the same
key.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand

from tests.celery.chaos import environment
from tests.celery.chaos.agenda import Call, agenda
from tests.celery.chaos.project.workflows import PROGRAMS
from tests.proof import clients, ledger
from tests.proof.random_programs.customers import patiently, repair_what_has_failed, resume_what_is_paused
from workflow_engine.models import WorkflowInstance

_REPEATED = 8
"""So many calls are made once more by a process that was started again."""
_A_LOOK = 1.0


class Command(BaseCommand):
    """Serve until everything has ended. What breaks it is told in the ledger."""

    def handle(self, **options: Any) -> None:
        """Make the calls of the run, and then wait for its end."""
        try:
            _serve(agenda(environment.plans(), environment.seconds(), environment.seed()))
            while not patiently(_all_is_over):
                _look_after()
        except Exception:
            ledger.write("broke", error=traceback.format_exc())
            raise


def _serve(calls: Sequence[Call]) -> None:
    """Make all the calls that were not made yet, each when its time has come."""
    begun = _beginning()
    made = sum(1 for entry in ledger.read() if entry["what"] == "called")
    instances: dict[str, UUID] = {}
    for number in range(max(made - _REPEATED, 0), len(calls)):
        while (early := begun + calls[number].at - time.time()) > 0:
            _look_after(early)
        patiently(partial(_make, calls[number], instances))
        if number >= made:
            ledger.write("called", second=calls[number].at)


def _make(call: Call, instances: dict[str, UUID]) -> None:
    """What is asked of an instance finds it by starting it once more, unless this process has started it."""
    if call.verb == "start" or call.key not in instances:
        instances[call.key] = clients.start(PROGRAMS[call.program][1], call.key)
    if call.verb == "signal":
        clients.send(instances[call.key], call.name, call.letter)
    elif call.verb != "start":
        clients.request(call.verb, instances[call.key])


def _look_after(longest: float = _A_LOOK) -> None:
    patiently(resume_what_is_paused)
    patiently(repair_what_has_failed)
    time.sleep(min(longest, _A_LOOK))


def _all_is_over() -> bool:
    return not WorkflowInstance.objects.exclude(status__in=["completed", "compensated", "cancelled"]).exists()


def _beginning() -> float:
    """When the run began: the first of these processes notes it."""
    begun = [entry["at"] for entry in ledger.read() if entry["what"] == "served"]
    ledger.write("served")
    return float(begun[0] if begun else time.time())
