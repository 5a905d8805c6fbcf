"""Workflows that chance made, under a nemesis, count what their plans say, and no invariant breaks.

A failure prints its seed: `make chaos-programs SEEDS=7:8` makes the same programs again. The blows fall where they
fall; what they hit is told by the ledger.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.proof.random_programs.plans import make
from tests.proof.random_programs.running import run
from tests.proof.seeds import THOROUGH, VARIABLE, seeds

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("seed", seeds(usually=1))
def test_random_programs_count_as_planned_whatever_befalls_their_workers(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run(seed, seconds=8, programs=4, instances=3) if THOROUGH else run(seed, seconds=3)
    assert outcome.complaints == [], f"{VARIABLE}={seed}:{seed + 1}, {dict(outcome.faults)}"
    assert outcome.faults["kill"]


def test_plans_differ_and_are_the_same_for_the_same_seed() -> None:
    plans = [make("some", Random(seed)) for seed in (1, 1, 2)]  # noqa: S311 - no secret
    assert plans[0] == plans[1] != plans[2]
