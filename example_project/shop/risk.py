"""Which orders a person looks at before we ask for the money."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .money import Money

# About 400 euros each, in minor units. A currency that is not listed is always looked at.
REVIEW_LIMITS = {"EUR": 400_00, "GBP": 350_00, "CHF": 380_00, "SEK": 4_500_00, "JPY": 65_000}


def needs_review(total: Money) -> bool:
    return total.minor > REVIEW_LIMITS.get(total.currency, 0)
