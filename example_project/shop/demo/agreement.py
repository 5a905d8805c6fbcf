"""Do the others tell the same story as the shop's tables: the provider, the carrier, and the engine?

Not only the sums: each payment, refund and parcel is looked for by its name on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from example_project.shop.models import Order, OrderStatus, Payment, PaymentStatus, Shipment
from example_project.shop.money import Money
from example_project.shop.payments import Taken
from example_project.shop.workflows import PAYMENT_SUCCEEDED, FulfilOrder
from workflow_engine.models import WorkflowInstance, WorkflowSignal

from .books import Finding

ENDS = {
    OrderStatus.IN_REVIEW: {"awaiting"},
    OrderStatus.AWAITING_PAYMENT: {"awaiting"},
    OrderStatus.SHIPPED: {"sleeping"},
    OrderStatus.CLOSED: {"completed"},
    OrderStatus.OUT_OF_STOCK: {"completed"},
    OrderStatus.REJECTED: {"completed"},
    OrderStatus.UNPAID: {"completed"},
    OrderStatus.CANCELLED: {"cancelled", "compensated"},
}
"""How the instance stands of an order that rests in this status."""


def audit(ledger: Mapping[str, Any]) -> list[Finding]:
    """The whole check; `ledger` is what the provider and the carrier say."""
    return [_with_provider(ledger["charges"]), _with_carrier(ledger["parcels"]), _with_engine()]


def _with_provider(charges: list[dict[str, Any]]) -> Finding:
    theirs = {
        charge["id"]: _payment(charge["reference"], Money(charge["amount_minor"], charge["currency"]), charge["refund"])
        for charge in charges
    }
    paid = Payment.objects.filter(status=PaymentStatus.SUCCEEDED).select_related("order", "refund")
    ours = {
        payment.provider_id: _payment(payment.order.number, payment.amount, _refund_of(payment)) for payment in paid
    }
    ours |= dict(_in_mailboxes())
    refunds = sum(charge["refund"] is not None for charge in charges)
    text = f"{len(theirs)} charges and {refunds} refunds in the provider's ledger, each one in our books"
    return Finding("provider", text, list(_differences("provider", ours, theirs)))


def _in_mailboxes() -> Iterator[tuple[str, str]]:
    """Payments that we know of and no step has asked for yet."""
    signals = WorkflowSignal.objects.unconsumed().filter(name=PAYMENT_SUCCEEDED).select_related("instance")
    for signal in signals:
        order = Order.objects.get(pk=signal.instance.subject_id)
        taken = Taken.from_json(signal.data or {})
        yield taken.payment_id, _payment(order.number, taken.amount, None)


def _payment(order: str, amount: Money, refund: str | None) -> str:
    return f"{amount} for {order}, {f'given back as {refund}' if refund else 'kept'}"


def _refund_of(payment: Payment) -> str | None:
    return payment.refund.provider_id if hasattr(payment, "refund") else None


def _with_carrier(parcels: list[dict[str, Any]]) -> Finding:
    theirs = {parcel["tracking_number"]: f"one for {parcel['reference']}, {parcel['status']}" for parcel in parcels}
    shipments = Shipment.objects.select_related("order")
    ours = {shipment.tracking_number: f"one for {shipment.order.number}, {shipment.status}" for shipment in shipments}
    text = f"{len(theirs)} parcels in the carrier's books, each one in ours"
    return Finding("carrier", text, list(_differences("carrier", ours, theirs)))


def _differences(who: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*ours, *theirs}):
        our, their = ours.get(name, "nothing"), theirs.get(name, "nothing")
        if our != their:
            yield f"{name}: we have {our}; the {who} has {their}"


def _with_engine() -> Finding:
    instances = WorkflowInstance.objects.filter(workflow_name=FulfilOrder.name)
    statuses = dict(instances.values_list("subject_id", "status"))
    errors = []
    for order in Order.objects.all():
        status = statuses.get(str(order.pk), "missing")
        if status not in ENDS.get(OrderStatus(order.status), set()):
            errors.append(f"{order.number} is {order.get_status_display()}, but its workflow instance is {status}")
    return Finding("engine", f"{len(statuses)} workflow instances stand where their orders do", errors)
