"""Money as whole minor units (cents, öre, yen) with a currency: exact to add, plain to store, honest in JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

# How many digits follow the decimal point. The yen has no smaller unit, so 100 minor units are 100 yen.
MINOR_DIGITS = {"EUR": 2, "GBP": 2, "CHF": 2, "SEK": 2, "JPY": 0}
CURRENCIES = tuple(MINOR_DIGITS)
AMOUNT = re.compile(r"(?P<whole>[0-9]{1,9})(?:[.,](?P<fraction>[0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of one currency. Amounts of different currencies don't add."""

    minor: int
    currency: str

    @classmethod
    def parse(cls, text: str, currency: str) -> Self:
        """Read "1299.00" or "1299,00". Raises ValueError for anything else, and for more digits than there are."""
        digits = MINOR_DIGITS[currency]
        match = AMOUNT.fullmatch(text.strip())
        fraction = (match["fraction"] or "") if match else ""
        if match is None or len(fraction) > digits:
            raise ValueError(f"{text!r} is not an amount in {currency}")
        return cls(int(match["whole"] + fraction.ljust(digits, "0")), currency)

    def __add__(self, other: Money) -> Money:
        if other.currency != self.currency:
            raise ValueError(f"{self} and {other} don't add")
        return Money(self.minor + other.minor, self.currency)

    def __str__(self) -> str:
        digits = MINOR_DIGITS[self.currency]
        return f"{Decimal(self.minor).scaleb(-digits):,.{digits}f} {self.currency}"
