from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from example_project.shop.models import Order, OrderLine, OutOfStockError, Payment, Price, Product, Refund, Shipment

if TYPE_CHECKING:
    from django.db.models import Model

    from .conftest import PlaceOrder

pytestmark = pytest.mark.django_db


def refused(model: type[Model], **values: Any) -> bool:
    with pytest.raises(IntegrityError), transaction.atomic():
        model._default_manager.create(**values)
    return True


def test_the_database_refuses_a_stock_below_nothing_or_above_what_was_received(pan: Product) -> None:
    for stock in (-1, pan.received + 1):
        with pytest.raises(IntegrityError), transaction.atomic():
            Product.objects.filter(pk=pan.pk).update(stock=stock)


def test_the_database_refuses_a_second_price_in_a_currency_and_a_price_of_nothing(pan: Product) -> None:
    assert refused(Price, product=pan, currency="EUR", amount_minor=1)
    assert refused(Price, product=pan, currency="GBP", amount_minor=0)


def test_the_database_refuses_a_product_twice_in_an_order(pan: Product, place_order: PlaceOrder) -> None:
    assert refused(OrderLine, order=place_order(pan), product=pan, quantity=1, unit_price_minor=1)


def test_the_database_refuses_a_line_of_nothing(pan: Product, machine: Product, place_order: PlaceOrder) -> None:
    order = place_order(pan)
    assert refused(OrderLine, order=order, product=machine, quantity=0, unit_price_minor=1)
    assert refused(OrderLine, order=order, product=machine, quantity=1, unit_price_minor=0)


def test_the_database_refuses_an_order_of_nothing_and_an_unknown_status(pan: Product, place_order: PlaceOrder) -> None:
    order = place_order(pan)
    for change in ({"total_minor": 0}, {"status": "lost"}, {"reminders": 4}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Order.objects.filter(pk=order.pk).update(**change)


def test_the_database_refuses_one_payment_twice_and_two_payments_of_one_order(
    pan: Product, place_order: PlaceOrder
) -> None:
    order = place_order(pan)
    payment = {"amount_minor": 1, "currency": "EUR", "received_at": timezone.now()}
    Payment.objects.create(order=order, provider_id="pay_1", status="declined", **payment)
    Payment.objects.create(order=order, provider_id="pay_2", status="succeeded", **payment)
    assert refused(Payment, order=order, provider_id="pay_2", status="declined", **payment)
    assert refused(Payment, order=order, provider_id="pay_3", status="succeeded", **payment)
    assert refused(Payment, order=order, provider_id="pay_4", status="declined", **payment | {"amount_minor": 0})


def test_the_database_refuses_to_give_a_payment_back_twice(pan: Product, place_order: PlaceOrder) -> None:
    at = timezone.now()
    payment = Payment.objects.create(
        order=place_order(pan),
        provider_id="pay_1",
        status="succeeded",
        amount_minor=1,
        currency="EUR",
        received_at=at,
    )
    Refund.objects.create(payment=payment, provider_id="re_1", refunded_at=at)
    assert refused(Refund, payment=payment, provider_id="re_2", refunded_at=at)


def test_the_database_refuses_two_parcels_for_an_order_and_a_parcel_without_number(
    pan: Product, place_order: PlaceOrder
) -> None:
    order, other = place_order(pan), place_order(pan, number="S-2")
    assert refused(Shipment, order=other, tracking_number="", shipped_at=timezone.now())
    assert refused(Shipment, order=other, tracking_number="PX3", status="lost", shipped_at=timezone.now())
    Shipment.objects.create(order=order, tracking_number="PX1", shipped_at=timezone.now())
    assert refused(Shipment, order=order, tracking_number="PX2", shipped_at=timezone.now())


def test_an_order_is_reserved_whole_or_not_at_all(pan: Product, machine: Product, place_order: PlaceOrder) -> None:
    order = place_order(pan, quantity=3)
    OrderLine.objects.create(order=order, product=machine, quantity=6, unit_price_minor=1)
    with pytest.raises(OutOfStockError, match=r"^Not enough of MACHINE in stock\.$"):
        Product.objects.reserve(order)
    assert set(Product.objects.values_list("sku", "stock")) == {("PAN", 10), ("MACHINE", 5)}
