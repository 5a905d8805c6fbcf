from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from example_project.shop.demo.books import audit
from example_project.shop.models import Order, OrderStatus, Payment, Product, Shipment

if TYPE_CHECKING:
    from .conftest import PlaceOrder

TAKEN = {"EUR": 80_00}


@pytest.fixture
def shipped(pan: Product, place_order: PlaceOrder) -> Order:
    order = place_order(pan, quantity=2)
    Product.objects.reserve(order)
    Payment.objects.create(
        order=order,
        provider_id="pay_1",
        status="succeeded",
        amount_minor=80_00,
        currency="EUR",
        received_at=timezone.now(),
    )
    Shipment.objects.create(order=order, tracking_number="PX1", shipped_at=timezone.now())
    order.move_to(OrderStatus.SHIPPED)
    return order


def errors(captured: dict[str, int] | None = None) -> list[str]:
    return [error for finding in audit(TAKEN if captured is None else captured) for error in finding.errors]


def test_books_that_add_up_say_what_was_counted(shipped: Order) -> None:
    assert [f"{finding.heading}: {finding.text}" for finding in audit(TAKEN)] == [
        "stock: 10 units received = 8 in stock + 2 in orders",
        "totals: 1 orders cost the sum of their lines",
        "money: 1 payments match the provider's: 80.00 EUR",
        "parcels: 1 parcels for 1 orders that are shipped",
    ]
    assert errors() == []


def test_stock_taken_twice_is_found(shipped: Order) -> None:
    Product.objects.reserve(shipped)
    assert errors() == ["PAN: 10 received, 2 in orders, but 6 in stock"]


def test_a_total_that_is_not_the_sum_of_the_lines_is_found(shipped: Order) -> None:
    Order.objects.update(total_minor=1)
    assert "S-1: the total is 0.01 EUR, not the sum of its lines" in errors()


def test_an_order_that_went_out_without_payment_is_found(shipped: Order) -> None:
    Payment.objects.all().delete()
    assert errors() == [
        "S-1 is shipped and costs 80.00 EUR, but nothing was paid",
        "our payments come to 0.00 EUR, but the provider took 80.00 EUR",
    ]


def test_money_kept_for_an_order_that_ended_is_found(shipped: Order) -> None:
    Shipment.objects.all().delete()
    Product.objects.release(shipped)
    shipped.move_to(OrderStatus.UNPAID)
    assert errors() == ["S-1 is cancelled, not paid and costs 80.00 EUR, but 80.00 EUR was paid"]


def test_a_missing_and_a_needless_parcel_are_found(shipped: Order, pan: Product, place_order: PlaceOrder) -> None:
    other = place_order(pan, number="S-2")
    Shipment.objects.update(order=other)
    assert sorted(errors()) == ["S-1 is shipped and has no parcel", "S-2 is placed and has a parcel"]
