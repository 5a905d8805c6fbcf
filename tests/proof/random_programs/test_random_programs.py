"""Workflows that chance made, under a nemesis, count what their plans say, and no invariant breaks.

A failure prints its seed: `make chaos-programs SEEDS=7:8` makes the same programs again. The blows fall where they
fall; what they hit is told by the ledger.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.proof.campaign import SEEDS_VARIABLE, Campaign, seeds
from tests.proof.random_programs.plans import make
from tests.proof.random_programs.running import run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("seed", seeds(usually=1))
def test_random_programs_count_as_planned_whatever_befalls_their_workers(seed: int, campaign: Campaign) -> None:
    long = SEEDS_VARIABLE in os.environ
    outcome = run(seed, seconds=8, programs=4, instances=3) if long else run(seed, seconds=3)
    campaign.seeds.append(f"programs: {seed}")
    campaign.note(outcome.case)
    campaign.faults.update(outcome.faults)
    assert outcome.complaints == [], f"{SEEDS_VARIABLE}={seed}:{seed + 1}, {dict(outcome.faults)}"
    assert sum(outcome.faults.values())


def test_plans_differ_and_are_the_same_for_the_same_seed() -> None:
    plans = [make("some", Random(seed)) for seed in (1, 1, 2)]  # noqa: S311 - no secret
    assert plans[0] == plans[1] != plans[2]
