"""A campaign: its size, as the environment asks for it, and its figures, for the report."""

from __future__ import annotations

import os
import platform
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import django
from django.db import connection

from tests.databases import ENGINE, TITLES
from tests.proof.cases import Case
from tests.proof.figures import keep
from tests.proof.sometimes import observed

SEEDS_VARIABLE = "WORKFLOW_ENGINE_CHAOS_SEEDS"
"""How many seeds, or "17:20" for 17, 18 and 19. Any value makes the campaign thorough."""

_ASKED = os.environ.get(SEEDS_VARIABLE, "")

THOROUGH = bool(_ASKED)
"""A campaign runs all cases, and the tests a choice of them, the same each time."""
OF_EACH = 1 if ENGINE == "sqlite" else 2
"""How many of each kind that choice has: locks are what servers are tested for."""


def seeds(usually: int) -> range:
    """The seeds to run; `usually` so many."""
    first, _, end = _ASKED.rpartition(":")
    return range(int(first or 0), int(end or usually))


@dataclass
class Campaign:
    """What has been done so far in this run.

    `part`: which of the campaign's parts goes on.
    """

    database: str = TITLES[ENGINE]
    part: str = ""
    ran_on: dict[str, str] = field(default_factory=dict)
    cases: Counter[str] = field(default_factory=Counter)
    """By part."""
    seeds: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By part."""
    crashes: Counter[str] = field(default_factory=Counter)
    """By the number of those that came before in the same case: 1, 2, 3."""
    failpoints: Counter[str] = field(default_factory=Counter)
    """How often a process died at each."""
    interruptions: Counter[str] = field(default_factory=Counter)
    """By who had his turn in the middle of somebody else's."""
    switches: int = 0
    """How often another thread went on than before, between two SQL statements."""
    faults: Counter[str] = field(default_factory=Counter)
    """By kind."""
    seen: Counter[str] = field(default_factory=Counter)
    violations: int = 0
    mutants: dict[str, dict[str, object]] = field(default_factory=dict)
    """Those that were caught."""

    def tries(self, seed: int) -> None:
        """The part goes on with that seed."""
        if seed not in self.seeds[self.part]:
            self.seeds[self.part].append(seed)

    def note(self, case: Case) -> None:
        """Count a case in."""
        self.ran_on = self.ran_on or _ran_on()
        self.cases[self.part] += 1
        dead = {entry["who"] for entry in case.evidence.entries("died")}
        hits = [entry["place"] for entry in case.evidence.entries("hit") if entry["pid"] in dead]
        self.failpoints.update(hits)
        self.crashes.update(str(depth) for depth, _ in enumerate(hits, 1))
        self.seen.update(observed(case.evidence))
        self.violations += len(case.violations)

    def write(self) -> None:
        """Keep the figures, if that is asked for."""
        keep(f"{ENGINE}-{os.getpid()}", vars(self))


def _ran_on() -> dict[str, str]:
    version = ".".join(map(str, connection.get_database_version()))
    return {"Python": platform.python_version(), "Django": django.get_version(), TITLES[ENGINE]: version}


def explain(case: Case, scenario: str, what: Sequence[object]) -> str:
    """What a failed case is told with: enough to run it again."""
    told = [str(violation) for violation in case.violations] or [f"it ended as {sorted(case.ends)}"]
    return "\n".join([f"{ENGINE}, scenario {scenario!r}, {list(what)}:", *told])
