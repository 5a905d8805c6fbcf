"""What a run tells its processes: the variables of their environment, and the engine's settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.proof.random_programs.plans import Plan, make

LEDGER_VARIABLE = "WORKFLOW_ENGINE_CHAOS_LEDGER"
"""The file that steps, the web process and the nemesis write into."""
SEED_VARIABLE = "WORKFLOW_ENGINE_CHAOS_SEED"
"""What the programs are made from."""
SECONDS_VARIABLE = "WORKFLOW_ENGINE_CHAOS_SECONDS"
"""How long the storm lasts, over which the web process spreads what it does."""
MUTANT_VARIABLE = "WORKFLOW_ENGINE_CHAOS_MUTANT"
"""The name of a way in which the engine is to be wrong, to see that the run fails; usually there is none."""
BROKER_VARIABLE = "WORKFLOW_ENGINE_CHAOS_BROKER"
"""The broker's address."""

ENGINE_SETTINGS: dict[str, Any] = {
    "DISPATCHER": "celery",
    # Everything that is waited for is shorter than in life, in the same proportions.
    "TICK_INTERVAL": 1,
    "GRACE": 4,
    "HOLD": 4,
    "POSTPONE": 4,
    "IDLE_IN_TRANSACTION": 2,
    "MAX_RECOVERIES": 10_000,  # the nemesis kills at random, so nothing is poison
}
QUEUE = "celery"
PROGRAMS = 12


def seed() -> int:
    """The run's."""
    return int(os.environ[SEED_VARIABLE])


def seconds() -> float:
    """How long the storm lasts."""
    return float(os.environ[SECONDS_VARIABLE])


def plans() -> Sequence[Plan]:
    """The programs of the run, the same in each of its processes."""
    chance = Random(seed())  # noqa: S311 - a seed is to be repeated
    return [make(f"chaos_{number}", chance) for number in range(PROGRAMS)]
