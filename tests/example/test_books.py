from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from django.db import IntegrityError, transaction

from example_project.shop import bookkeeping
from example_project.shop.carrier import Parcel
from example_project.shop.demo import agreement, books
from example_project.shop.models import Order, OrderStatus, Payment, Product, Refund, Shipment
from example_project.shop.payments import Taken
from example_project.shop.workflows import start_fulfilment
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .conftest import PlaceOrder

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def shipped(pan: Product, place_order: PlaceOrder) -> Order:
    order = place_order(pan, quantity=2)
    Product.objects.reserve(order)
    taken = Taken("pay_1", 80_00, "EUR")
    bookkeeping.book_payment(order, taken, at=AT)
    Shipment.objects.create(order=order, tracking_number="PX1", shipped_at=AT)
    order.move_to(OrderStatus.SHIPPED)
    return order


def errors() -> list[str]:
    return [error for finding in books.audit() for error in finding.errors]


def told() -> list[str]:
    return [f"{finding.heading}: {finding.text}" for finding in books.audit()]


def test_books_that_add_up_say_what_was_counted(shipped: Order) -> None:
    assert told() == [
        "stock: 10 units received = 8 in stock + 2 in orders + 0 on their way back",
        "totals: 1 orders cost the sum of their lines",
        "money: 1 payments - 0 refunds = 80.00 EUR",
        "parcels: 1 parcels - 0 called back = 1 for the orders that are shipped",
    ]
    assert errors() == []


def test_books_of_an_order_that_was_undone_add_up_too(shipped: Order) -> None:
    bookkeeping.book_refund(shipped, Taken("pay_1", 80_00, "EUR"), "re_1", at=AT)
    bookkeeping.note_recalled(shipped, Parcel("PX1", "returning", has_label=True), at=AT)
    shipped.move_to(OrderStatus.CANCELLED)
    assert told() == [
        "stock: 10 units received = 8 in stock + 0 in orders + 2 on their way back",
        "totals: 1 orders cost the sum of their lines",
        "money: 1 payments - 1 refunds = nothing",
        "parcels: 1 parcels - 1 called back = 0 for the orders that are shipped",
    ]
    assert errors() == []


def test_what_is_booked_twice_is_in_the_books_once(shipped: Order) -> None:
    for _ in range(2):
        bookkeeping.book_payment(shipped, Taken("pay_1", 80_00, "EUR"), at=AT)
        bookkeeping.book_refund(shipped, Taken("pay_1", 80_00, "EUR"), "re_1", at=AT)
        bookkeeping.note_recalled(shipped, Parcel("PX1", "recalled", has_label=True), at=AT)
    assert (Payment.objects.count(), Refund.objects.count(), Shipment.objects.count()) == (1, 1, 1)


def test_a_payment_is_not_booked_for_two_orders(shipped: Order, pan: Product, place_order: PlaceOrder) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        bookkeeping.book_payment(place_order(pan, number="S-2"), Taken("pay_1", 80_00, "EUR"), at=AT)


def test_stock_taken_twice_is_found(shipped: Order) -> None:
    Product.objects.reserve(shipped)
    assert errors() == ["PAN: 10 received, 2 in orders, 0 on the way back, but 6 in stock"]


def test_a_total_that_is_not_the_sum_of_the_lines_is_found(shipped: Order) -> None:
    Order.objects.update(total_minor=1)
    assert "S-1: the total is 0.01 EUR, not the sum of its lines" in errors()


def test_an_order_that_went_out_without_payment_is_found(shipped: Order) -> None:
    Payment.objects.all().delete()
    assert errors() == ["S-1 is shipped and costs 80.00 EUR, but nothing was paid and kept"]


def test_money_kept_for_an_order_that_ended_is_found(shipped: Order) -> None:
    Shipment.objects.all().delete()
    Product.objects.release(shipped)
    shipped.move_to(OrderStatus.CANCELLED)
    assert errors() == ["S-1 is cancelled and costs 80.00 EUR, but 80.00 EUR was paid and kept"]


def test_a_missing_and_a_needless_parcel_are_found(shipped: Order, pan: Product, place_order: PlaceOrder) -> None:
    other = place_order(pan, number="S-2")
    Shipment.objects.update(order=other)
    assert sorted(errors()) == [
        "S-1 is shipped and has no parcel on its way",
        "S-2 is placed and has a parcel on its way",
    ]


# --- against the others -----------------------------------------------------------------------

CHARGE = {"id": "pay_1", "reference": "S-1", "amount_minor": 80_00, "currency": "EUR", "refund": None}
PARCEL = {"tracking_number": "PX1", "reference": "S-1", "status": "booked"}


def disagreements(*, charges: Sequence[object] = (CHARGE,), parcels: Sequence[object] = (PARCEL,)) -> list[str]:
    ledger = {"charges": list(charges), "parcels": list(parcels)}
    return [error for finding in agreement.audit(ledger) for error in finding.errors]


@pytest.fixture
def asleep(shipped: Order) -> WorkflowInstance:
    """The workflow instance of the shipped order, as it stands at the end."""
    instance = start_fulfilment(shipped)
    WorkflowInstance.objects.filter(pk=instance.pk).update(status="sleeping", poll_at=AT, due_at=AT)
    return instance


def test_the_others_agree(asleep: WorkflowInstance) -> None:
    findings = agreement.audit({"charges": [CHARGE], "parcels": [PARCEL]})
    assert [f"{finding.heading}: {finding.text}" for finding in findings] == [
        "provider: 1 charges and 0 refunds in the provider's ledger, each one in our books",
        "carrier: 1 parcels in the carrier's books, each one in ours",
        "engine: 1 workflow instances stand where their orders do",
    ]
    assert disagreements() == []


def test_a_charge_that_we_know_nothing_of_is_found(asleep: WorkflowInstance) -> None:
    assert disagreements(charges=[CHARGE, CHARGE | {"id": "pay_2"}]) == [
        "pay_2: we have nothing; the provider has 80.00 EUR for S-1, kept"
    ]


def test_a_payment_and_a_refund_that_the_provider_knows_nothing_of_are_found(
    shipped: Order, asleep: WorkflowInstance
) -> None:
    assert disagreements(charges=[]) == ["pay_1: we have 80.00 EUR for S-1, kept; the provider has nothing"]
    bookkeeping.book_refund(shipped, Taken("pay_1", 80_00, "EUR"), "re_1", at=AT)
    assert disagreements() == [
        "pay_1: we have 80.00 EUR for S-1, given back as re_1; the provider has 80.00 EUR for S-1, kept"
    ]


def test_a_payment_that_waits_in_the_mailbox_is_known(
    pan: Product, place_order: PlaceOrder, asleep: WorkflowInstance
) -> None:
    instance = start_fulfilment(place_order(pan, number="S-2"))
    engine.signal(instance, "payment_succeeded", {"payment_id": "pay_2", "amount_minor": 40_00, "currency": "EUR"})
    early = {"id": "pay_2", "reference": "S-2", "amount_minor": 40_00, "currency": "EUR", "refund": None}
    assert disagreements(charges=[CHARGE, early]) == ["S-2 is placed, but its workflow instance is pending"]


def test_a_parcel_that_is_another_one_for_the_carrier_is_found(asleep: WorkflowInstance) -> None:
    assert disagreements(parcels=[PARCEL | {"status": "recalled"}]) == [
        "PX1: we have one for S-1, booked; the carrier has one for S-1, recalled"
    ]


def test_an_instance_that_stands_elsewhere_than_its_order_is_found(asleep: WorkflowInstance) -> None:
    WorkflowInstance.objects.update(status="in_progress")
    assert disagreements() == ["S-1 is shipped, but its workflow instance is in_progress"]
    WorkflowInstance.objects.all().delete()
    assert disagreements() == ["S-1 is shipped, but its workflow instance is missing"]
