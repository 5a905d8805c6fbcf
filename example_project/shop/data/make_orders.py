"""Writes products.csv and orders.csv: invented, always the same, and as untidy as what real shops export.

    python -m example_project.shop.data.make_orders

There are accents and commas in names, five currencies, prices with a decimal comma, stray blanks, a product
without stock, two that run out, totals over the review limit, an order line given twice, and one invalid row. Some
customers have a stored card, a few of them one that will be declined.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, TypeVar

from example_project.shop.money import CURRENCIES, MINOR_DIGITS

T = TypeVar("T")

HERE = Path(__file__).parent
PRODUCT_COLUMNS = ["sku", "name", "stock", *CURRENCIES]
ORDER_COLUMNS = ["order", "placed_on", "customer", "email", "currency", "sku", "quantity", "unit_price", "card"]
ORDERS = 200


class Product(NamedTuple):
    sku: str
    name: str
    stock: int
    euros: str
    popularity: int


PRODUCTS = [
    Product("KIT-01", "Crêpe pan, 28 cm", 400, "39.90", 10),
    Product("KIT-02", "Teapot “Åse”, blue glaze", 300, "54.00", 9),
    Product("KIT-03", "Kaffeekanne für 8 Tassen", 300, "48.50", 8),
    Product("KIT-04", "Linen towels “Łódź”, set of 2", 500, "18.00", 12),
    Product("KIT-05", "Piñata cookie cutters", 600, "9.95", 14),
    Product("KIT-06", "Smørrebrød board, oak", 250, "27.50", 9),
    Product("KIT-07", "Purée sieve", 350, "22.00", 8),
    Product("KIT-08", "Espresso machine “Sofía”", 60, "689.00", 3),
    Product("KIT-09", "Chef's knife, hand-forged", 120, "149.00", 5),
    Product("KIT-10", "Jam jars, 6 pieces", 900, "11.40", 12),
    Product("KIT-11", "Salt cellar “Malmö”", 24, "34.00", 6),
    Product("KIT-12", "Mortar, basalt", 14, "61.00", 4),
    Product("KIT-13", "Sake cup 盃, hand-thrown", 0, "42.00", 2),
]
RATES = {"EUR": Decimal(1), "GBP": Decimal("0.86"), "CHF": Decimal("0.95"), "SEK": Decimal("11.3"), "JPY": Decimal(162)}

PEOPLE = {
    "EUR": [
        "Zoë Lefèvre",
        "Jürgen Weiß",
        "Noémie Garçon",
        "Seán Ó Súilleabháin",
        "Łucja Wójcik",
        "Iñaki Núñez",
        "Eleni Παπαδοπούλου",
        "Müller, Bärbel",
        "João Gonçalves",
        "Mireia d'Argençola",
        "Anna-Liisa Mäkinen",
    ],
    "GBP": ["Siân Llewellyn", "Charlotte Brontë-Hill", "O'Neill, Aoife", "Tom Achebe", "Renée Clarke"],
    "CHF": ["Reto Zürcher", "Chloé Délèze", "Flurin Cathomas"],
    "SEK": ["Åsa Öberg", "Björn Ångström", "Märta Sjöö"],
    "JPY": ["山田 花子", "佐藤 健", "Yūko Ōno"],
}
CURRENCY_WEIGHTS = ["EUR"] * 10 + ["GBP"] * 4 + ["SEK"] * 3 + ["CHF"] * 2 + ["JPY"] * 2


class Dice:
    """Choices made from `random()` alone: the one method whose sequence Python promises to keep for a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - invented orders are not secrets

    def below(self, limit: int) -> int:
        return int(self._random() * limit)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def one_in(self, odds: int) -> bool:
        return self.below(odds) == 0


def price(product: Product, currency: str) -> str:
    """The list price as text: yen have no decimals, Swiss prices end in 0 or 5."""
    amount = Decimal(product.euros) * RATES[currency]
    if currency == "CHF":
        amount = (amount * 20).quantize(Decimal(1)) / 20
    return str(amount.quantize(Decimal(1).scaleb(-MINOR_DIGITS[currency])))


def product_rows() -> list[list[str]]:
    return [[p.sku, p.name, str(p.stock), *(price(p, currency) for currency in CURRENCIES)] for p in PRODUCTS]


def order_rows() -> list[list[str]]:
    dice, card_dice = Dice(1815), Dice(1816)
    rows = [
        [*row, card] for index in range(ORDERS) for card in [stored_card(card_dice)] for row in one_order(dice, index)
    ]
    rows.insert(120, list(rows[119]))
    broken = list(rows[57])
    rows[57] = [*broken[:6], "two", *broken[7:]]
    return rows


def one_order(dice: Dice, index: int) -> list[list[str]]:
    currency = dice.pick(CURRENCY_WEIGHTS)
    customer = dice.pick(PEOPLE[currency])
    placed_on = date(2025, 3, 1) + timedelta(days=index // 8)
    shelf = [product for product in PRODUCTS for _ in range(product.popularity)]
    basket = {dice.pick(shelf).sku: None for _ in range(1 + dice.below(3))}
    rows = []
    for product in (product for product in PRODUCTS if product.sku in basket):
        quantity = 1 + dice.below(12 if dice.one_in(20) else 2)
        rows.append(
            [
                f"S-{1001 + index}",
                placed_on.isoformat(),
                customer,
                f"customer{index + 1}@example.com",
                currency,
                product.sku,
                str(quantity),
                price(product, currency),
            ]
        )
    return [untidy(dice, row) for row in rows]


def stored_card(dice: Dice) -> str:
    """The payment provider's name for the card, or nothing: then the customer pays on the provider's page."""
    number = dice.below(10_000)
    if dice.below(100) >= 45:
        return ""
    return f"card_declined_{number:04d}" if dice.one_in(16) else f"card_{number:04d}"


def untidy(dice: Dice, row: list[str]) -> list[str]:
    """What spreadsheets and hands do to a row, without making it wrong."""
    number, placed_on, customer, email, currency, sku, quantity, unit_price = row
    if dice.one_in(25):
        customer = f" {customer}  "
    if dice.one_in(25):
        currency = currency.lower()
    if dice.one_in(8) and currency in {"EUR", "SEK"}:
        unit_price = unit_price.replace(".", ",")
    return [number, placed_on, customer, email, currency, sku, quantity, unit_price]


def as_csv(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def files() -> dict[str, str]:
    return {
        "products.csv": as_csv(PRODUCT_COLUMNS, product_rows()),
        "orders.csv": as_csv(ORDER_COLUMNS, order_rows()),
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")
