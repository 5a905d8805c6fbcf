"""Reads products and orders from CSV files. What is wrong in a file is reported, and never stops the rest."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from .models import Order, Price, Product
from .money import CURRENCIES, Money


class RowError(ValueError):
    """A row that can't be understood."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an order, understood."""

    customer: str
    email: str
    placed_at: datetime
    product: Product
    quantity: int
    unit_price: Money
    card: str

    @classmethod
    def parse(cls, cells: dict[str, str], products: dict[str, Product]) -> Row:
        currency, sku = cells["currency"].upper(), cells["sku"]
        if currency not in CURRENCIES:
            raise RowError(f"{currency!r} is not a currency we sell in")
        if sku not in products:
            raise RowError(f"there is no product {sku!r}")
        return cls(
            customer=cells["customer"],
            email=_email(cells["email"]),
            placed_at=_date(cells["placed_on"]),
            product=products[sku],
            quantity=_quantity(cells["quantity"]),
            unit_price=_price(cells["unit_price"], currency),
            card=_card(cells.get("card", "")),
        )


def _email(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise RowError(f"{text!r} is not an e-mail address") from None
    return text


def _date(text: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(text), time(tzinfo=UTC))
    except ValueError:
        raise RowError(f"{text!r} is not a date") from None


def _quantity(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise RowError(f"{text!r} is not a quantity")
    return int(text)


def _price(text: str, currency: str) -> Money:
    try:
        price = Money.parse(text, currency)
    except ValueError as error:
        raise RowError(str(error)) from None
    if not price.minor:
        raise RowError(f"{price} is not a price")
    return price


def _card(text: str) -> str:
    if not re.fullmatch(r"(card_[a-z0-9_]{1,35})?", text):
        raise RowError(f"{text!r} is not a stored card")
    return text


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a line of the file, and what was done about it."""

    line: int
    order: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, order {self.order}: {self.text}"


@dataclass(slots=True)
class Report:
    placed: list[Order] = field(default_factory=list)
    known: int = 0
    problems: list[Problem] = field(default_factory=list)


def load_products(path: Path) -> int:
    """Create or update every product with its prices; the stock starts over. Returns how many there are."""
    rows = [cells for _, cells in _cells(path)]
    with transaction.atomic():
        for cells in rows:
            stock = int(cells["stock"])
            product, _ = Product.objects.update_or_create(
                sku=cells["sku"], defaults={"name": cells["name"], "received": stock, "stock": stock}
            )
            for currency in CURRENCIES:
                price = Money.parse(cells[currency], currency)
                Price.objects.update_or_create(
                    product=product, currency=currency, defaults={"amount_minor": price.minor}
                )
    return len(rows)


@transaction.atomic
def load_orders(path: Path, *, limit: int | None = None) -> Report:
    """Place every order of the file that is not there yet, or the first `limit` of them.

    An order with a row that can't be understood is left out whole: nobody wants half of what they ordered.
    """
    report = Report()
    products = {product.sku: product for product in Product.objects.all()}
    known = set(Order.objects.values_list("number", flat=True))
    for number, numbered in _by_order(path).items():
        if len(report.placed) == limit:
            break
        if number in known:
            report.known += 1
        elif rows := _understood(number, numbered, products, report.problems):
            report.placed.append(_place(number, rows))
    return report


def _place(number: str, rows: list[Row]) -> Order:
    first = rows[0]
    return Order.objects.place(
        [(row.product, row.quantity, row.unit_price) for row in rows],
        number=number,
        customer=first.customer,
        email=first.email,
        card=first.card,
        currency=first.unit_price.currency,
        placed_at=first.placed_at,
    )


def _understood(
    number: str, numbered: Iterable[tuple[int, dict[str, str]]], products: dict[str, Product], problems: list[Problem]
) -> list[Row]:
    """The rows of one order without repeated products; empty when one of them is wrong."""
    rows: dict[str, Row] = {}
    broken = False
    for line, cells in numbered:
        try:
            row = Row.parse(cells, products)
        except RowError as error:
            problems.append(Problem(line, number, f"{error}; the order is left out"))
            broken = True
            continue
        if row.product.sku in rows:
            problems.append(Problem(line, number, f"{row.product.sku} is listed twice; this line is left out"))
        else:
            rows[row.product.sku] = row
    return [] if broken else list(rows.values())


def _by_order(path: Path) -> dict[str, list[tuple[int, dict[str, str]]]]:
    orders: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for line, cells in _cells(path):
        orders.setdefault(cells["order"], []).append((line, cells))
    return orders


def _cells(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line numbers and cells without stray blanks; a short row has empty cells."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, restval="")
        for cells in reader:
            yield reader.line_num, {name: value.strip() for name, value in cells.items() if name is not None}
