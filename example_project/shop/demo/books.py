"""Do stock, money and parcels add up? Counted from the shop's tables alone: no word of the engine's is taken for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import F, QuerySet, Sum

from example_project.shop.models import (
    Order,
    OrderLine,
    Payment,
    PaymentStatus,
    Product,
    Refund,
    Shipment,
    ShipmentStatus,
)
from example_project.shop.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Finding:
    """What was counted under one heading, and each thing that does not fit."""

    heading: str
    text: str
    errors: list[str]


def audit() -> list[Finding]:
    """The whole check."""
    return [_stock(), _totals(), _money(), _parcels()]


def sums(amounts: Iterable[Money]) -> str:
    """The amounts added up, one sum per currency."""
    totals: Counter[str] = Counter()
    for amount in amounts:
        totals[amount.currency] += amount.minor
    return ", ".join(str(Money(minor, currency)) for currency, minor in sorted(totals.items())) or "nothing"


def _stock() -> Finding:
    sold = _units(OrderLine.objects.filter(order__status__in=Order.HOLDING_STOCK))
    returning = _units(OrderLine.objects.filter(order__shipment__status=ShipmentStatus.RETURNING))
    products = list(Product.objects.all())
    errors = [
        f"{product.sku}: {product.received} received, {sold[product.pk]} in orders, {returning[product.pk]} on the way"
        f" back, but {product.stock} in stock"
        for product in products
        if product.received != product.stock + sold[product.pk] + returning[product.pk]
    ]
    received, stock = sum(product.received for product in products), sum(product.stock for product in products)
    text = f"{received:,} units received = {stock:,} in stock + {sold.total():,} in orders"
    return Finding("stock", f"{text} + {returning.total():,} on their way back", errors)


def _units(lines: QuerySet[OrderLine]) -> Counter[int]:
    """Units per product."""
    return Counter(dict(lines.values_list("product_id").annotate(Sum("quantity"))))


def _totals() -> Finding:
    orders = Order.objects.annotate(sum_of_lines=Sum(F("lines__quantity") * F("lines__unit_price_minor")))
    wrong = orders.exclude(sum_of_lines=F("total_minor"))
    errors = [f"{order.number}: the total is {order.total}, not the sum of its lines" for order in wrong]
    return Finding("totals", f"{Order.objects.count()} orders cost the sum of their lines", errors)


def _money() -> Finding:
    """An order that got as far as being paid keeps one payment of what it costs; any other keeps none."""
    paid = Payment.objects.filter(status=PaymentStatus.SUCCEEDED)
    kept: dict[int, list[Money]] = defaultdict(list)
    for payment in paid.filter(refund=None):
        kept[payment.order_id].append(payment.amount)
    errors = []
    for order in Order.objects.all():
        if kept[order.pk] != ([order.total] if order.status in Order.SETTLED else []):
            found = ", ".join(map(str, kept[order.pk])) or "nothing"
            errors.append(f"{_named(order)} and costs {order.total}, but {found} was paid and kept")
    text = f"{paid.count()} payments - {Refund.objects.count()} refunds = {sums(_all(kept))}"
    return Finding("money", text, errors)


def _all(kept: dict[int, list[Money]]) -> Iterator[Money]:
    for amounts in kept.values():
        yield from amounts


def _parcels() -> Finding:
    shipments = Shipment.objects.all()
    out = set(shipments.filter(status=ShipmentStatus.BOOKED).values_list("order_id", flat=True))
    errors = [
        f"{_named(order)} and has {'a' if order.pk in out else 'no'} parcel on its way"
        for order in Order.objects.all()
        if (order.pk in out) != (order.status in Order.SENT)
    ]
    back = shipments.exclude(status=ShipmentStatus.BOOKED).count()
    text = f"{shipments.count()} parcels - {back} called back = {len(out)} for the orders that are shipped"
    return Finding("parcels", text, errors)


def _named(order: Order) -> str:
    return f"{order.number} is {order.get_status_display()}"
