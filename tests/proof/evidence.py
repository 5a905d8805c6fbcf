"""What a judge is given, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from tests.proof.folding import Moment, replay
from tests.proof.ledger import Entry
from tests.proof.tables import Tables

LEASED = frozenset({"activity", "undo"})
"""Kinds of work that run outside any transaction."""


class Violation(NamedTuple):
    """One broken invariant, by its number."""

    invariant: int
    text: str

    def __str__(self) -> str:
        return f"invariant {self.invariant}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The tables, the ledger, and the circumstances.

    `before`: an earlier reading of the same database. `now`: the engine's time of the reading. `at_rest`: nothing works
    on it, and all that was due has run.
    """

    tables: Tables
    ledger: Sequence[Entry]
    now: datetime
    before: Tables | None = None
    max_recoveries: int = 5
    at_rest: bool = True

    @cached_property
    def moments(self) -> dict[str, list[Moment]]:
        """The histories, replayed, by instance."""
        return {key: list(replay(history)) for key, history in self.tables.events.items()}

    def entries(self, *what: str) -> Iterator[Entry]:
        """The ledger's entries of these kinds, in order."""
        return (entry for entry in self.ledger if entry["what"] in what)

    @cached_property
    def committed(self) -> dict[int, datetime]:
        """When each signal was committed at the latest, as its sender knows, if he lived to note it."""
        first: dict[int, datetime] = {}
        for entry in self.entries("sent"):
            first.setdefault(entry["mail"], datetime.fromisoformat(entry["committed_at"]))
        return first

    @cached_property
    def begun(self) -> list[Entry]:
        """Every run of user code that began, in order."""
        return list(self.entries("began"))


Judge = Callable[[Evidence], Iterator[Violation]]
