"""The run's random programs; and that every process which knows them notes what it does in the run's ledger."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from tests.celery.chaos import environment
from tests.proof import ledger
from tests.proof.cases import listening
from tests.proof.random_programs.workflows import define
from workflow_engine import failpoints

PROGRAMS = [(plan, define(plan)) for plan in environment.plans()]

_for_good = ExitStack()
_for_good.enter_context(ledger.kept_in(Path(os.environ[environment.LEDGER_VARIABLE])))
_for_good.enter_context(listening())


def _note_claims(place: str) -> None:
    if place == "suspect.after":
        ledger.write("suspected")


_for_good.enter_context(failpoints.installed(_note_claims))

if mutant := os.environ.get(environment.MUTANT_VARIABLE):
    from tests.celery.chaos.project import wrong

    wrong.make_wrong(mutant)
