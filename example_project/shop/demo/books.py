"""Do stock, money and parcels add up? Counted from the shop's tables alone: no word of the engine's is taken for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import F, Sum

from example_project.shop.models import Order, OrderLine, Payment, PaymentStatus, Product, Shipment
from example_project.shop.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Finding:
    """What was counted under one heading, and each thing that does not fit."""

    heading: str
    text: str
    errors: list[str]


def audit(captured: Mapping[str, int]) -> list[Finding]:
    """The whole check. `captured` is what the provider says it took, in minor units per currency."""
    return [_stock(), _totals(), _money(captured), _parcels()]


def _stock() -> Finding:
    sold = _sold()
    products = list(Product.objects.all())
    errors = [
        f"{product.sku}: {product.received} received, {sold[product.pk]} in orders, but {product.stock} in stock"
        for product in products
        if product.stock != product.received - sold[product.pk]
    ]
    received, stock = sum(product.received for product in products), sum(product.stock for product in products)
    return Finding(
        "stock", f"{received:,} units received = {stock:,} in stock + {sum(sold.values()):,} in orders", errors
    )


def _sold() -> Counter[int]:
    """Units per product in orders that hold stock."""
    lines = OrderLine.objects.filter(order__status__in=Order.HOLDING_STOCK)
    return Counter(dict(lines.values_list("product_id").annotate(Sum("quantity"))))


def _totals() -> Finding:
    orders = Order.objects.annotate(sum_of_lines=Sum(F("lines__quantity") * F("lines__unit_price_minor")))
    wrong = orders.exclude(sum_of_lines=F("total_minor"))
    errors = [f"{order.number}: the total is {order.total}, not the sum of its lines" for order in wrong]
    return Finding("totals", f"{Order.objects.count()} orders cost the sum of their lines", errors)


def _money(captured: Mapping[str, int]) -> Finding:
    paid = Payment.objects.filter(status=PaymentStatus.SUCCEEDED)
    banked = dict(paid.values_list("currency").annotate(Sum("amount_minor")))
    errors = [*_wrongly_paid(), *_not_as_captured(banked, captured)]
    sums = ", ".join(str(Money(minor, currency)) for currency, minor in sorted(banked.items()))
    return Finding("money", f"{paid.count()} payments match the provider's: {sums}", errors)


def _wrongly_paid() -> Iterator[str]:
    """An order that got as far as being paid has one payment of what it costs; any other has none."""
    paid: dict[int, list[Money]] = {}
    for payment in Payment.objects.filter(status=PaymentStatus.SUCCEEDED):
        paid.setdefault(payment.order_id, []).append(payment.amount)
    for order in Order.objects.all():
        expected = [order.total] if order.status in Order.SETTLED else []
        if paid.get(order.pk, []) != expected:
            found = ", ".join(map(str, paid.get(order.pk, []))) or "nothing"
            yield f"{order.number} is {order.get_status_display()} and costs {order.total}, but {found} was paid"


def _not_as_captured(banked: Mapping[str, int], captured: Mapping[str, int]) -> Iterator[str]:
    for currency in sorted({*banked, *captured}):
        ours, theirs = Money(banked.get(currency, 0), currency), Money(captured.get(currency, 0), currency)
        if ours != theirs:
            yield f"our payments come to {ours}, but the provider took {theirs}"


def _parcels() -> Finding:
    shipped = set(Shipment.objects.values_list("order_id", flat=True))
    errors = [
        f"{order.number} is {order.get_status_display()} and has {'a' if order.pk in shipped else 'no'} parcel"
        for order in Order.objects.all()
        if (order.pk in shipped) != (order.status in Order.SENT)
    ]
    return Finding("parcels", f"{len(shipped)} parcels for {len(shipped)} orders that are shipped", errors)
