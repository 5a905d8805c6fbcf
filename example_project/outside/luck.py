"""What goes wrong, and with whom: drawn from a seed and the order's number, so that every run has the same bad luck."""

from __future__ import annotations

import enum
import threading
import zlib
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field


class Mood(enum.StrEnum):
    """How a request is answered. It is carried out first, except by a server that is down."""

    FINE = "fine"
    SLOW = "slow"  # after a moment
    TWICE = "answered twice"
    LOST = "lost"  # the connection is closed, and no answer sent
    STALLED = "stalled"  # the connection is left open, and no answer sent
    DOWN = "down"  # 503


DRAWN: Sequence[tuple[int, Sequence[Mood]]] = (
    (3, (Mood.LOST, Mood.LOST)),
    (8, (Mood.LOST,)),
    (8, (Mood.SLOW,)),
    (6, (Mood.TWICE,)),
    (5, (Mood.DOWN,)),
)
"""So many in a hundred have these moods, one request after the other; after that, and for all others, all is fine."""


@dataclass(slots=True)
class Luck:
    """Decides about each request. Without a seed nothing happens but what is planned.

    Args:
        seed: what draws are made from.
        moods: what happens to the requests for (operation, order), one after the other.
        sure: the (event, order) that happen; see `happens`.
        down: which charges, counted over all orders from 1, find the provider down.
    """

    seed: int | None = None
    moods: Mapping[tuple[str, str], Sequence[Mood]] = field(default_factory=dict)
    sure: Container[tuple[str, str]] = ()
    down: range = range(0)
    _charges: int = 0
    _times: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def mood(self, operation: str, order: str) -> Mood:
        """For the next request of this operation for this order."""
        with self._lock:
            self._charges += operation == "charge"
            if operation == "charge" and self._charges in self.down:
                return Mood.DOWN
            time = self._times[operation, order]
            self._times[operation, order] += 1
        moods = self.moods.get((operation, order)) or self._drawn(operation, order)
        return moods[time] if time < len(moods) else Mood.FINE

    def happens(self, event: str, order: str, *, percent: int) -> bool:
        """Whether the event, which befalls so many orders in a hundred, befalls this one."""
        if (event, order) in self.sure:
            return True
        return self.seed is not None and self._draw(event, order) < percent

    def _drawn(self, operation: str, order: str) -> Sequence[Mood]:
        if self.seed is None:
            return ()
        draw = self._draw(operation, order)
        for percent, moods in DRAWN:
            draw -= percent
            if draw < 0:
                return moods
        return ()

    def _draw(self, *what: str) -> int:
        return zlib.crc32(" ".join((str(self.seed), *what)).encode()) % 100
