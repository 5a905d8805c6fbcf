"""How an order is fulfilled, from the shelf to the customer's door.

Read it from top to bottom: the first nine steps are the way of an order that goes well, the two after them
are where it may turn off. A method marked @step runs in one database transaction with the engine's note that
it is done, so what it writes is there exactly once, whatever crashes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workflow_engine import (
    Await,
    Context,
    Fail,
    Finish,
    Goto,
    Outcome,
    RetryPolicy,
    Signal,
    Sleep,
    Workflow,
    engine,
    step,
)

from . import carrier, risk
from .models import Order, OrderStatus, OutOfStockError, Payment, PaymentStatus, Product, Shipment

if TYPE_CHECKING:
    from workflow_engine.models import WorkflowInstance

PAYMENT_SUCCEEDED = "payment_succeeded"
PAYMENT_DECLINED = "payment_declined"
REVIEW_DECIDED = "review_decided"

REVIEW_WITHIN = timedelta(days=2)
REMIND_AFTER = timedelta(hours=1)
MAX_REMINDERS = 3
MAX_DECLINES = 2
FOLLOW_UP_AFTER = timedelta(days=5)


class FulfilOrder(Workflow):
    """Reserve, review, get paid, ship, and ask a few days later whether all is well."""

    name = "fulfil_order"
    version = 1

    @step
    def reserve_stock(self, ctx: Context) -> Outcome | None:
        order: Order = ctx.subject
        try:
            Product.objects.reserve(order)
        except OutOfStockError as error:
            order.move_to(OrderStatus.OUT_OF_STOCK, note=str(error))
            return Finish({"outcome": "out of stock", "sku": error.sku})
        order.move_to(OrderStatus.RESERVED)
        return None

    @step(goes_to=("request_payment",))
    def assess_risk(self, ctx: Context) -> Outcome | None:
        order: Order = ctx.subject
        if not risk.needs_review(order.total):
            return Goto("request_payment")
        order.move_to(OrderStatus.IN_REVIEW)
        return None

    @step(goes_to=("cancel_order",))
    def review(self, ctx: Context) -> Outcome:
        return Await(REVIEW_DECIDED, timeout=REVIEW_WITHIN)

    @review.on_signal
    def decided(self, ctx: Context, signal: Signal) -> Outcome | dict[str, Any]:
        approved = (signal.data or {}).get("approved")
        if approved is None:
            # Somebody signalled by hand and left out what matters. The clock runs on: `ctx.deadline`, no new two days.
            return Await(REVIEW_DECIDED, timeout=ctx.deadline)
        order: Order = ctx.subject
        order.reviewed_by = signal.actor
        order.save(update_fields=["reviewed_by"])
        if approved:
            return {"approved_by": signal.actor}
        return self._cancel(OrderStatus.REJECTED, f"Rejected by {signal.actor}.")

    @review.on_timeout
    def nobody_looked(self, ctx: Context) -> Outcome:
        return self._cancel(OrderStatus.REJECTED, "Nobody reviewed it in time.")

    @step
    def request_payment(self, ctx: Context) -> None:
        ctx.subject.move_to(OrderStatus.AWAITING_PAYMENT)

    @step(goes_to=("send_reminder", "cancel_order"))
    def await_payment(self, ctx: Context) -> Outcome:
        return Await(PAYMENT_SUCCEEDED, PAYMENT_DECLINED, timeout=REMIND_AFTER)

    @await_payment.on_signal
    def payment_answered(self, ctx: Context, signal: Signal) -> Outcome | dict[str, Any]:
        order: Order = ctx.subject
        payment = _record_payment(order, signal)
        if payment.status == PaymentStatus.DECLINED:
            return self._payment_declined(ctx)
        if payment.amount != order.total:
            return Fail(f"{payment.provider_id} paid {payment.amount}, but {order.number} costs {order.total}")
        order.move_to(OrderStatus.PAID)
        return {"payment": payment.provider_id}

    @await_payment.on_timeout
    def payment_is_late(self, ctx: Context) -> Outcome:
        if ctx.subject.reminders < MAX_REMINDERS:
            return Goto("send_reminder")
        return self._cancel(OrderStatus.UNPAID, f"Not paid after {MAX_REMINDERS} reminders.")

    @step(retry=RetryPolicy(max_attempts=6, initial_delay=timedelta(seconds=1), max_delay=timedelta(minutes=10)))
    def ship(self, ctx: Context) -> dict[str, Any]:
        # CarrierBusyError is not caught: an exception means "again, as the retry policy says", and undoes what this
        # attempt wrote.
        order: Order = ctx.subject
        tracking_number = carrier.book_parcel(order.number, attempt=ctx.attempt)
        Shipment.objects.create(order=order, tracking_number=tracking_number, shipped_at=ctx.now)
        order.move_to(OrderStatus.SHIPPED)
        return {"tracking_number": tracking_number}

    @step
    def wait_for_delivery(self, ctx: Context) -> Outcome:
        return Sleep(FOLLOW_UP_AFTER)

    @step
    def follow_up(self, ctx: Context) -> Outcome:
        ctx.subject.move_to(OrderStatus.CLOSED)
        return Finish({"outcome": "fulfilled"})

    # --- where an order may turn off -----------------------------------------------------------

    @step(goes_to=("await_payment",))
    def send_reminder(self, ctx: Context) -> Outcome:
        order: Order = ctx.subject
        order.reminders += 1
        order.save(update_fields=["reminders"])
        return Goto("await_payment")

    @step
    def cancel_order(self, ctx: Context) -> Outcome:
        order: Order = ctx.subject
        Product.objects.release(order)
        order.move_to(OrderStatus(ctx["ends_as"]), note=ctx["reason"])
        return Finish({"outcome": order.status, "reason": order.note})

    def _payment_declined(self, ctx: Context) -> Outcome:
        declines = ctx.get("declines", 0) + 1
        if declines >= MAX_DECLINES:
            return self._cancel(OrderStatus.UNPAID, f"The card was declined {declines} times.")
        # The customer may try another card, within the same hour.
        return Await(PAYMENT_SUCCEEDED, PAYMENT_DECLINED, timeout=ctx.deadline, updates={"declines": declines})

    def _cancel(self, status: OrderStatus, reason: str) -> Goto:
        return Goto("cancel_order", updates={"ends_as": status.value, "reason": reason})


def start_fulfilment(order: Order, *, actor: object = None) -> WorkflowInstance:
    """The order's instance: started, or the one there is. In a transaction, both commit or neither."""
    return engine.start(FulfilOrder, subject=order, idempotency_key=f"order-{order.pk}", actor=actor)


def _record_payment(order: Order, signal: Signal) -> Payment:
    """One row per payment. The webhook view sends its particulars; a person who signals by hand sends none.

    Then the customer paid the whole sum some other way: `manage.py workflow_signal shop.order:42 payment_succeeded`.
    """
    by_hand: dict[str, Any] = {
        "payment_id": f"by-hand-{signal.id}",
        "amount_minor": order.total_minor,
        "currency": order.currency,
    }
    data = signal.data or by_hand
    return Payment.objects.create(
        order=order,
        provider_id=data["payment_id"],
        status=PaymentStatus.SUCCEEDED if signal.name == PAYMENT_SUCCEEDED else PaymentStatus.DECLINED,
        amount_minor=data["amount_minor"],
        currency=data["currency"],
        received_at=signal.received_at,
    )
