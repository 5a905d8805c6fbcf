"""One run: the storm, the calm after it, and the judgement."""

from __future__ import annotations

import time
from collections import Counter as Count
from dataclasses import dataclass
from pathlib import Path
from random import Random

from django.core.management import call_command
from django.db import connection

from tests.celery.chaos import judging
from tests.celery.chaos.cell import Cell
from tests.celery.chaos.fleet import Fleet, fleet_at_work
from tests.celery.chaos.nemesis import Nemesis
from tests.celery.chaos.nemesis.victims import Victims
from tests.proof import ledger, tables
from tests.proof.random_programs.plans import COUNTERS
from tests.proof.tables import Tables

_BETWEEN_BLOWS = (0.5, 3.0)
_A_LOOK = 0.2
_STANDSTILL = 90.0
"""Seconds without any event after which a run that is not at its end counts as stuck: many times GRACE and all else."""
_THOROUGH = 120.0
"""A run of so many seconds has to do every kind of fault, and to see what they lead to."""


@dataclass(frozen=True)
class Outcome:
    """What came of it. `complaints`: everything that is wrong."""

    complaints: list[str]
    faults: Count[str]
    seen: Count[str]
    instances: int
    storm: float
    calm: float
    """Seconds until everything had ended, after the storm."""


def run(cell: Cell, seconds: float, seed: int, folder: Path) -> Outcome:
    """Let the fleet work in the storm for so long, wait until all is done, and judge.

    Args:
        cell: its servers run, and the environment tells of them.
        folder: for logs and the ledger.
    """
    _prepare()
    with ledger.kept_in(folder / "ledger"):
        with fleet_at_work(folder) as fleet:
            begun = time.monotonic()
            nemesis = Nemesis(Victims(cell, fleet), Random(seed))  # noqa: S311 - a seed is to be repeated
            _rage(nemesis, fleet, seconds)
            over = time.monotonic()
            before = _read()
            stuck = _calm(fleet)
            calm = time.monotonic() - over
        seen = judging.seen(fleet, folder)
        complaints = [*stuck, *judging.complaints(before, folder, finished=not stuck)]
        if seconds >= _THOROUGH:
            complaints += [f"never done: {kind}" for kind in nemesis.never_done()]
            complaints += [f"never seen: {kind}" for kind in judging.EXPECTED if not seen[kind]]
    return Outcome(complaints, nemesis.done, seen, judging.instances(), over - begun, calm)


def _prepare() -> None:
    from tests.shop.models import Counter

    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)
    for name in COUNTERS:
        Counter.objects.create(name=name)


def _rage(nemesis: Nemesis, fleet: Fleet, seconds: float) -> None:
    end = time.monotonic() + seconds
    chance = Random()  # noqa: S311 - how long a blow takes is not to be repeated anyway
    while time.monotonic() < end:
        nemesis.strike()
        following = time.monotonic() + chance.uniform(*_BETWEEN_BLOWS)
        while time.monotonic() < following:
            fleet.look_after()
            time.sleep(_A_LOOK)


def _calm(fleet: Fleet) -> list[str]:
    """Wait until everything has ended; why each that has not is where it is, once nothing moves any more."""
    fleet.wake_all()
    moved, last = time.monotonic(), ""
    while not (fleet.web.is_done and judging.is_over()):
        fleet.look_after()
        time.sleep(_A_LOOK)
        now = judging.progress()
        if now != last:
            moved, last = time.monotonic(), now
        if time.monotonic() - moved > _STANDSTILL:
            return [*judging.stuck(), *["the web process has not ended"] * (not fleet.web.is_done)]
    return []


def _read() -> Tables:
    connection.close_if_unusable_or_obsolete()
    return tables.read()
