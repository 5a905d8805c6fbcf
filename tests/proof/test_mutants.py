"""The checker catches every mutant, by the invariants named beforehand; without the mutant its hunt finds nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.databases import ENGINE
from tests.proof import decision_mutants, delivery_mutants, engine_mutants
from tests.proof.campaign import Campaign
from tests.proof.hunting import Hunt, strictly, whatever_happens
from tests.proof.mutants import Mutant

MUTANTS = [*engine_mutants.mutants, *delivery_mutants.mutants, *decision_mutants.mutants]
HERE = [mutant for mutant in MUTANTS if ENGINE in mutant.databases]
HUNTS = {mutant.hunt: mutant for mutant in reversed(HERE)}
"""Each with the first mutant that it is for."""

pytestmark = pytest.mark.django_db(transaction=True)


def name_of(mutant: Mutant) -> str:
    return mutant.name.replace(" ", "_")


def on_its_aliases(mutant: Mutant) -> Any:
    mark = pytest.mark.django_db(transaction=True, databases=mutant.aliases)
    return pytest.param(mutant, marks=mark, id=name_of(mutant))


@pytest.mark.parametrize("hunt", list(HUNTS), ids=[name_of(mutant) for mutant in HUNTS.values()])
def test_without_a_mutant_a_hunt_finds_nothing(hunt: Hunt, campaign: Campaign) -> None:
    case = hunt(strictly)
    campaign.note(case)
    assert case.violations == []


@pytest.mark.parametrize("mutant", [on_its_aliases(mutant) for mutant in HERE])
def test_the_checker_catches(mutant: Mutant, campaign: Campaign) -> None:
    reported: set[int] = set()
    for run in range(1, mutant.runs + 1):
        with pytest.MonkeyPatch.context() as patch:
            mutant.apply(patch)
            case = mutant.hunt(whatever_happens)
        reported |= {violation.invariant for violation in case.violations}
        if mutant.invariants <= reported:
            campaign.mutants[mutant.name] = {"invariants": sorted(mutant.invariants), "runs": run}
            return
    pytest.fail(f"{mutant.name} was not caught in {mutant.runs} runs; reported: {sorted(reported)}")


def test_there_are_mutants_of_every_invariant_that_tables_can_show() -> None:
    """Number 15 is about time: tests/traps has it."""
    assert len(MUTANTS) >= 25
    assert {number for mutant in MUTANTS for number in mutant.invariants} == set(range(1, 15))
