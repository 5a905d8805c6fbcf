"""Running the machine, as WORKFLOW_ENGINE_MODEL_EXAMPLES and _MODEL_SEED ask for: `make chaos-model` sets them."""

from __future__ import annotations

import os

from hypothesis import Phase, seed, settings
from hypothesis.stateful import get_state_machine_test

from tests.model.machine import Machine

ASKED = int(os.environ.get("WORKFLOW_ENGINE_MODEL_EXAMPLES") or 0)
"""How many examples; 0 for those that there is time for anyway."""
SEED = int(os.environ.get("WORKFLOW_ENGINE_MODEL_SEED") or 0)

STEPS = 12
"""Of one example, at most."""


def run(examples: int, *, number: int = 0, shrink: bool = True) -> None:
    """The same examples each time, for a number that seeds them.

    Args:
        examples: how many.
        number: the seed.
        shrink: look for the shortest failing example, which takes up to five minutes.
    """
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        derandomize=False,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
        print_blob=True,
    )
    seed(number)(get_state_machine_test(Machine, settings=chosen))()
