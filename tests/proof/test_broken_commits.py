"""A COMMIT may break off anywhere, carried out or not: what was promised holds all the same, and nothing fails for it.

A failed case prints how to run it again: the scenario, the number of the COMMIT, and what became of it.
"""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import count

import pytest
from django.db import OperationalError

from tests.proof.campaign import OF_EACH, Campaign, explain, seeds
from tests.proof.cases import judged, life_of
from tests.proof.crashing import traced
from tests.proof.faults import Fate, breaking_commits, commits_meet
from tests.proof.recovery import until_quiet
from tests.proof.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "_"))
def test_a_commit_may_break_off_anywhere(scenario: Scenario, campaign: Campaign) -> None:
    commits = commits_of(scenario)
    for seed in seeds(usually=2 * OF_EACH):
        campaign.tries(seed)
        chance = random.Random(f"{scenario.name} {seed}")  # noqa: S311 - a seed is to be repeated
        at, carried_out = chance.randrange(commits), seed % 2 == 0
        with life_of(scenario) as live:
            # Who commits a transaction of his own is told of it, and does it again, as after any error.
            with breaking_commits(carried_out=carried_out, after=at), suppress(OperationalError):
                live()
            traced(live)
            traced(until_quiet)
            case = judged()
        campaign.note(case)
        told = explain(case, scenario.name, [at, "carried out" if carried_out else "not carried out", f"seed {seed}"])
        assert not case.violations, told
        assert case.ends <= scenario.ends, told
        assert sum(1 for _ in case.evidence.entries("met")) == 1, told


def commits_of(scenario: Scenario) -> int:
    """How many there are when nothing befalls it."""
    numbers = count()

    def counted() -> Fate:
        next(numbers)
        return Fate.WELL

    with life_of(scenario) as live, commits_meet(counted):
        traced(live)
    return next(numbers)
