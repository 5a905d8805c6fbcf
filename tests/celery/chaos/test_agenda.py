"""What a run is made of is known before it: the same for the same seed, and all that the plans need."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.celery.chaos.agenda import agenda
from tests.proof.random_programs.plans import Plan, make


def plans(seed: int) -> list[Plan]:
    chance = Random(seed)  # noqa: S311 - a seed is to be repeated
    return [make(f"some_{number}", chance) for number in range(10)]


def test_the_calls_are_the_same_for_the_same_seed() -> None:
    assert agenda(plans(1), 60, 1) == agenda(plans(1), 60, 1) != agenda(plans(1), 60, 2)


def test_everything_that_the_plans_need_is_sent_in_time() -> None:
    calls = agenda(plans(3), 60, 3)
    assert all(0 <= call.at <= 60 for call in calls)
    letters = Counter((call.key, call.name) for call in {(c.letter, c.key): c for c in calls if c.letter}.values())
    for number, plan in enumerate(plans(3)):
        key = f"{plan.name}, {number}"
        own = [call.verb for call in calls if call.key == key]
        assert own[0] == "start"
        assert ("cancel" in own) == (plan.status == "cancelled")
        assert {name: letters[key, name] for name in plan.answers()} == Counter(plan.answers())
