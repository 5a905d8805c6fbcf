"""An engine that is wrong, in every process of a run: tests/proof/mutants.py tells in which ways it can be."""

from __future__ import annotations

import pytest

from tests.proof import decision_mutants, delivery_mutants, engine_mutants

MUTANTS = {
    mutant.name: mutant for mutant in (*engine_mutants.mutants, *delivery_mutants.mutants, *decision_mutants.mutants)
}


def make_wrong(name: str) -> None:
    """For the rest of this process."""
    MUTANTS[name].apply(pytest.MonkeyPatch())
