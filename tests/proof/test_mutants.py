"""The checker catches every mutant, by an invariant named beforehand; without the mutant its hunt finds nothing."""

from __future__ import annotations

import pytest

from tests.databases import ENGINE
from tests.proof import decision_mutants, engine_mutants
from tests.proof.campaign import Campaign
from tests.proof.hunts import strictly, whatever_happens
from tests.proof.mutants import Mutant

MUTANTS = [*engine_mutants.mutants, *decision_mutants.mutants]
HERE = [mutant for mutant in MUTANTS if ENGINE in mutant.databases]

# "other" is the alias on which a hook of one of the mutants does not wait.
pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

here = pytest.mark.parametrize("mutant", HERE, ids=lambda mutant: mutant.name.replace(" ", "_"))


@here
def test_without_the_mutant_its_hunt_finds_nothing(mutant: Mutant, campaign: Campaign) -> None:
    case = mutant.hunt(strictly)
    campaign.note(case)
    assert case.violations == []


@here
def test_the_checker_catches(mutant: Mutant, campaign: Campaign) -> None:
    reported: set[int] = set()
    for run in range(1, mutant.runs + 1):
        with pytest.MonkeyPatch.context() as patch:
            mutant.apply(patch)
            case = mutant.hunt(whatever_happens)
        reported |= {violation.invariant for violation in case.violations}
        if caught := mutant.invariants & reported:
            campaign.mutants[mutant.name] = {"invariants": sorted(caught), "runs": run}
            return
    pytest.fail(f"{mutant.name} was not caught in {mutant.runs} runs; reported: {sorted(reported)}")


def test_there_are_mutants_of_every_invariant_that_tables_can_show() -> None:
    assert len(MUTANTS) >= 25
    assert {number for mutant in MUTANTS for number in mutant.invariants} == {
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
    }
