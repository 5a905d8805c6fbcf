"""Whether random programs have counted what their plans say."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable

from tests.proof.random_programs.plans import COUNTERS, Plan
from tests.shop.models import Counter


def miscounted(plans: Iterable[Plan]) -> list[str]:
    """Counters that are not what one instance of each of these leaves in them."""
    expected = sum((plan.counted for plan in plans), Count[str]())
    found = dict(Counter.objects.filter(name__in=COUNTERS).values_list("name", "value"))
    return [
        f"the counter {name} is {found[name]}, not {expected[name]}"
        for name in COUNTERS
        if found[name] != expected[name]
    ]
