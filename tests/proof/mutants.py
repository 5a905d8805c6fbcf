"""The mutants: ways in which an engine of this kind is wrong, each put into this one for the length of a hunt.

The package knows nothing of them and has no switch for them: they are patched in from here. Each names the invariants
that the checker must report, the hunt that provokes it, and the databases on which it can show. `engine_mutants` has
those of the locked turn, `delivery_mutants` those of what leaves a transaction, `decision_mutants` those of what is
decided.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.proof.hunting import Hunt

Patch = pytest.MonkeyPatch
Apply = Callable[[Patch], object]

EVERYWHERE = ("sqlite", "postgresql", "mysql")
WITH_ROW_LOCKS = ("postgresql", "mysql")
"""On SQLite BEGIN IMMEDIATE keeps every other writer out, so that a missing row lock changes nothing."""
MARIADB = ("mysql",)


@dataclass(frozen=True)
class Mutant:
    """One of them.

    `runs`: so many runs of the hunt are enough to catch it; 1, as nothing is left to chance. `databases`: where it can
    show. `aliases`: that it writes to or listens on.
    """

    name: str
    apply: Apply
    invariants: frozenset[int]
    hunt: Hunt
    databases: tuple[str, ...] = EVERYWHERE
    runs: int = 1
    aliases: tuple[str, ...] = ("default",)


class Mutants(list[Mutant]):
    """A table of them, filled by decorating functions; what a mutant does is told by its docstring."""

    def breaking(self, *invariants: int, hunt: Hunt, **more: Any) -> Callable[[Apply], Apply]:
        """Add the function as a mutant that breaks these invariants, as that hunt shows. For `more` see `Mutant`."""

        def add(apply: Apply) -> Apply:
            name = apply.__name__.replace("_", " ")
            self.append(Mutant(name, apply, frozenset(invariants), hunt, **more))
            return apply

        return add


def everywhere(patch: Patch, old: Any, new: Any) -> None:
    """Replace a function in every module of the package that has imported it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("workflow_engine"):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    patch.setattr(module, attribute, new)


def like(original: Any, **changed: Any) -> Any:
    """The original, with some attributes changed."""

    class Like:
        def __getattr__(self, name: str) -> Any:
            return changed[name] if name in changed else getattr(original, name)

        def __call__(self, *arguments: Any, **more: Any) -> Any:
            return original(*arguments, **more)

    return Like()
