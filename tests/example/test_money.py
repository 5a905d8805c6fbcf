from __future__ import annotations

import pytest

from example_project.shop.money import Money


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [("1299.00", "EUR", 129900), ("9,95", "EUR", 995), ("9.5", "GBP", 950), (" 7 ", "SEK", 700), ("1612", "JPY", 1612)],
)
def test_an_amount_is_read_in_minor_units(text: str, currency: str, minor: int) -> None:
    assert Money.parse(text, currency) == Money(minor, currency)


@pytest.mark.parametrize("text", ["", "two", "-1.00", "1.234", "1e9", "NaN", "1,299.00", "٣"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is not an amount in EUR$"):
        Money.parse(text, "EUR")


def test_yen_have_no_decimals() -> None:
    with pytest.raises(ValueError, match=r"^'16\.50' is not an amount in JPY$"):
        Money.parse("16.50", "JPY")


def test_money_is_shown_with_the_digits_of_its_currency() -> None:
    assert [str(Money(129900, "EUR")), str(Money(5, "GBP")), str(Money(111618, "JPY"))] == [
        "1,299.00 EUR",
        "0.05 GBP",
        "111,618 JPY",
    ]


def test_two_currencies_do_not_add() -> None:
    assert Money(1, "EUR") + Money(2, "EUR") == Money(3, "EUR")
    with pytest.raises(ValueError, match=r"^0\.01 EUR and 2 JPY don't add$"):
        Money(1, "EUR") + Money(2, "JPY")
