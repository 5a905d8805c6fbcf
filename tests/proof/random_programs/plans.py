"""Plans of workflows, made by chance, and what each must come to: worked out from the plan, without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

COUNTERS = tuple(f"c{number}" for number in range(5))
"""What all programs count in: few, so that they get in each other's way."""


class Kind(Enum):
    """What a part of a program does when it is run, beside counting."""

    STEP = "step"
    ACTIVITY = "activity"
    ANSWER = "answer"
    """Awaits a signal that is sent."""
    SILENCE = "silence"
    """Awaits a signal that nobody sends, until its deadline."""
    SLEEP = "sleep"
    LOOP = "loop"
    """Goes back, a few times."""
    FAIL = "fail"
    """Fails for good: everything is undone."""
    BREAK = "break"
    """Fails for good until somebody has repaired what it needs; then it is retried."""
    HANG = "hang"
    """Awaits a signal that nobody sends, for longer than anybody waits: it is cancelled."""


class Undo(Enum):
    """How what a part counted is counted down again."""

    NONE = "none"
    ATOMIC = "atomic"
    LEASED = "leased"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One step of a program.

    `counts`: each visit counts these up by one. `failures`: so many attempts fail before that. `rounds` and `back`: of
    a loop, how often it is visited and to which part it goes back.
    """

    kind: Kind
    counts: tuple[str, ...]
    failures: int = 0
    undo: Undo = Undo.NONE
    rounds: int = 1
    back: int = 0


@dataclass(frozen=True)
class Plan:
    """One program."""

    name: str
    parts: Sequence[Part]

    @property
    def status(self) -> str:
        """What every instance of it ends as."""
        return _ENDS.get(self.parts[-1].kind, "completed")

    @property
    def breaks(self) -> bool:
        """Whether every instance of it fails on the way, and has to be repaired and retried."""
        return any(part.kind is Kind.BREAK for part in self.parts)

    @property
    def visits(self) -> list[int]:
        """How often each part is visited."""
        visits = [1] * len(self.parts)
        for number, part in enumerate(self.parts):
            if part.kind is Kind.LOOP:
                visits[part.back : number + 1] = [part.rounds] * (number + 1 - part.back)
        return visits

    @property
    def counted(self) -> Counter[str]:
        """What one instance of it leaves in the counters."""
        counted: Counter[str] = Counter()
        for part, times in zip(self.parts, self.visits, strict=True):
            if self.status != "completed" and part.undo is not Undo.NONE:
                continue
            for name in part.counts:
                counted[name] += times
        return counted

    def answers(self) -> Iterator[str]:
        """The signals that one instance needs."""
        for number, (part, times) in enumerate(zip(self.parts, self.visits, strict=True)):
            if part.kind is Kind.ANSWER:
                yield from [signal_name(number)] * times


_ENDS = {Kind.FAIL: "compensated", Kind.HANG: "cancelled"}
"""Of a program whose last part is of that kind; every other one is completed."""


def signal_name(number: int) -> str:
    """What part number `number` awaits."""
    return f"answer_{number}"


def key_of(number: int) -> str:
    """The key of part number `number`."""
    return f"part_{number}"


def make(name: str, chance: Random) -> Plan:
    """Make one up.

    One that is cancelled may be so anywhere, and one that breaks must have nothing to undo: so of the one all that
    counts can be undone, and of the other nothing.
    """
    ending = chance.choice([None, None, None, Kind.FAIL, Kind.FAIL, Kind.HANG, Kind.BREAK])
    undoes = {Kind.HANG: [Undo.ATOMIC, Undo.LEASED], Kind.BREAK: [Undo.NONE]}.get(ending or Kind.STEP, list(Undo))
    parts: list[Part] = []
    loop_ended = 0
    for _ in range(chance.randint(4, 9)):
        parts.append(_part(chance, undoes))
        if chance.random() < 0.2:
            counts = () if ending is Kind.HANG else _counts(chance)
            back = chance.randint(loop_ended, len(parts) - 1)
            parts.append(Part(kind=Kind.LOOP, counts=counts, rounds=chance.randint(2, 3), back=back))
            loop_ended = len(parts)
    if ending is Kind.BREAK:
        parts.append(Part(kind=Kind.BREAK, counts=_counts(chance)))
        parts.append(_part(chance, undoes))
    elif ending:
        parts.append(Part(kind=ending, counts=()))
    return Plan(name, tuple(parts))


def _part(chance: Random, undoes: Sequence[Undo]) -> Part:
    kind = chance.choice([Kind.STEP, Kind.STEP, Kind.ACTIVITY, Kind.ACTIVITY, Kind.ANSWER, Kind.SILENCE, Kind.SLEEP])
    failures = chance.choice([0, 0, 1, 2]) if kind in {Kind.STEP, Kind.ACTIVITY} else 0
    undo = chance.choice([undo for undo in undoes if kind is not Kind.ACTIVITY or undo is not Undo.ATOMIC])
    return Part(kind=kind, counts=_counts(chance), failures=failures, undo=undo)


def _counts(chance: Random) -> tuple[str, ...]:
    """One or two counters, in any order, so that two of them can wait for each other."""
    return tuple(chance.sample(COUNTERS, chance.randint(1, 2)))
