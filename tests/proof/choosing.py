"""Which failpoints of a scenario are hit: all that matter when there is time, and a choice that is always the same."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.proof.crashing import Point

_MORE_STEPS = frozenset({"steps", "activities", "undo"})
"""Scenarios of several like steps: the ones in the middle count too."""

Chosen = dict[str, list[int]]
"""Numbers of failpoints, by scenario."""


def all_that_matter(traces: Mapping[str, Sequence[Point]]) -> Chosen:
    """The first and the last passing of every failpoint in every scenario."""
    chosen = {}
    for scenario, points in traces.items():
        passings: dict[str, list[int]] = defaultdict(list)
        for number, point in enumerate(points):
            passings[point.name].append(number)
        numbers = {at for each in passings.values() for at in (each[0], each[-1])}
        if scenario in _MORE_STEPS:
            numbers |= {each[len(each) // 2] for each in passings.values()}
        chosen[scenario] = sorted(numbers)
    return chosen


def a_few(traces: Mapping[str, Sequence[Point]], of_each: int) -> Chosen:
    """So many of each failpoint and of each scenario, spread at random, but always the same."""
    everything = all_that_matter(traces)
    chance = random.Random("a few")  # noqa: S311 - it must be the same each time
    by_name: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for scenario, numbers in everything.items():
        for number in numbers:
            by_name[traces[scenario][number].name].append((scenario, number))
    chosen: Chosen = {
        scenario: chance.sample(numbers, min(of_each, len(numbers))) for scenario, numbers in everything.items()
    }
    for cases in by_name.values():
        for scenario, number in chance.sample(cases, min(of_each, len(cases))):
            chosen[scenario].append(number)
    return {scenario: sorted(set(numbers)) for scenario, numbers in chosen.items()}
