"""What befalls a run: one deed per function, in random order, each as often as the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from tests.celery.chaos.nemesis import broker, database, workers
from tests.celery.chaos.nemesis.victims import Victims

Deed = Callable[[Victims, Random], bool]
"""Whether there was something that it could be done to."""

DEEDS: tuple[Deed, ...] = (*workers.DEEDS, *database.DEEDS, *broker.DEEDS)


def title(deed: Deed) -> str:
    """How the deed is told in figures."""
    return deed.__name__.replace("_", " ")


class Nemesis:
    """Does one deed after the other.

    `done`: how often, by title.
    """

    def __init__(self, victims: Victims, chance: Random) -> None:
        self._victims, self._chance = victims, chance
        self._next: list[Deed] = []
        self.done: Counter[str] = Counter()

    def strike(self) -> None:
        """Do the next deed; no kind comes again before all the others have come."""
        if not self._next:
            self._next = self._chance.sample(DEEDS, len(DEEDS))
        deed = self._next.pop()
        if deed(self._victims, self._chance):
            self.done[title(deed)] += 1

    def never_done(self) -> list[str]:
        """Kinds that the run has not seen."""
        return sorted({title(deed) for deed in DEEDS} - self.done.keys())
