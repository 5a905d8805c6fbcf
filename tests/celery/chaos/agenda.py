"""What the web process of a run is called for: starts, signals and requests, each once or twice, early and late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.proof.random_programs.plans import Plan

_PER_SECOND = 0.7
"""Instances that are started."""
_LATEST = 30.0
"""Seconds after its instance's start at which something is asked of it at the latest."""
_PAUSED = 0.3
"""The share of instances that are paused on their way."""


@dataclass(frozen=True, order=True)
class Call:
    """`at` so many seconds after the beginning. `verb`: start, signal, cancel or pause. `key`: the instance's.

    `name` and `letter`: of a signal, its name and its key.
    """

    at: float
    program: int
    key: str
    verb: str = "start"
    name: str = ""
    letter: str = ""


def agenda(plans: Sequence[Plan], seconds: float, seed: int) -> list[Call]:
    """All calls of a run, in order."""
    chance = Random(seed)  # noqa: S311 - a seed is to be repeated
    calls: list[Call] = []
    for number in range(max(int(seconds * _PER_SECOND), len(plans))):
        program = number % len(plans)
        start = Call(chance.uniform(0, seconds), program, f"{plans[program].name}, {number}")
        calls.append(start)
        calls += [_later(start, start, seconds, chance)] * chance.choice([0, 0, 1])
        for call in _requests(start, plans[program], chance):
            calls += [_later(call, start, seconds, chance) for _ in range(chance.choice([1, 1, 2]))]
    return sorted(calls)


def _requests(start: Call, plan: Plan, chance: Random) -> Iterator[Call]:
    for number, name in enumerate(plan.answers()):
        yield Call(start.at, start.program, start.key, "signal", name, f"{start.key}: {number}")
    if plan.status == "cancelled":
        yield Call(start.at, start.program, start.key, "cancel")
    if chance.random() < _PAUSED:
        yield Call(start.at, start.program, start.key, "pause")


def _later(call: Call, start: Call, seconds: float, chance: Random) -> Call:
    return replace(call, at=min(start.at + chance.uniform(0, _LATEST), seconds))
