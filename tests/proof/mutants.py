"""The mutants: ways in which an engine of this kind is wrong, each put into this one for the length of a hunt.

The package knows nothing of them: they are patched in from here. Each names the invariants, one of which the checker
must report, and the hunt that provokes it. `engine_mutants` has those of the locked turn and the database,
`decision_mutants` those of what is decided.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.proof.hunts import ALWAYS, Hunt

Patch = pytest.MonkeyPatch
Apply = Callable[[Patch], object]


@dataclass(frozen=True)
class Mutant:
    """One of them. `runs`: so many runs of the hunt are enough to catch it."""

    name: str
    apply: Apply
    invariants: frozenset[int]
    hunt: Hunt
    databases: tuple[str, ...] = ALWAYS
    runs: int = 1


class Mutants(list[Mutant]):
    """A table of them, filled by decorating functions; what a mutant does is told by its docstring."""

    def breaking(
        self, *invariants: int, hunt: Hunt, on: tuple[str, ...] = ALWAYS, runs: int = 1
    ) -> Callable[[Apply], Apply]:
        """Add the function as a mutant that breaks one of these invariants, as that hunt shows."""

        def add(apply: Apply) -> Apply:
            name = apply.__name__.replace("_", " ")
            self.append(Mutant(name, apply, frozenset(invariants), hunt, on, runs))
            return apply

        return add


def everywhere(patch: Patch, old: Any, new: Any) -> None:
    """Replace a function in every module of the package that has imported it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("workflow_engine"):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    patch.setattr(module, attribute, new)
