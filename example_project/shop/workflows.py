"""How an order is fulfilled, from the shelf to the customer's door.

Read it from top to bottom: the first ten steps are the way of an order that goes well, the three after them are where
it may turn off.

* A method marked @step runs in one database transaction with the engine's note that it is done. What it writes is there
  exactly once, whatever crashes.
* A method marked @activity calls another company's server, outside any transaction. It may run twice, so it hands on
  `ctx.idempotency_key`. What it learns it returns, and the step after it writes that down.
* A method marked compensation undoes its step, when a later one fails for good or the order is cancelled. Undos run in
  reverse order, each until it is recorded as done.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workflow_engine import (
    Await,
    Context,
    Fail,
    Finish,
    Goto,
    Outcome,
    Retry,
    RetryPolicy,
    Signal,
    Sleep,
    Workflow,
    activity,
    engine,
    step,
)
from workflow_engine.models import WorkflowEvent

from . import bookkeeping, carrier, payments, risk
from .calls import UnavailableError
from .models import Order, OrderStatus, OutOfStockError, PaymentStatus, Product, Shipment, ShipmentStatus
from .payments import Taken

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

# How long an activity may be silent before its worker counts as dead, in seconds. A little more than an answer may take
# (calls.TIMEOUT): the shorter, the sooner an order goes on after a crash.
LEASE = 6
LABEL_PAUSE = 0.1


class FulfilOrder(Workflow):
    """Reserve, review, get paid, ship, and ask a few days later whether all is well."""

    name = "fulfil_order"
    version = 1
    # For every step, and for every undo: what is down now is up again in a moment or in an hour.
    retry = RetryPolicy(max_attempts=10, initial_delay=timedelta(seconds=0.5), max_delay=timedelta(minutes=10))

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

    @reserve_stock.compensation(atomic=True)
    def release_stock(self, ctx: Context, result: Any) -> None:
        # It was done first, so it is undone last: by now the money is back. `atomic`, because all it does is in our own
        # database: it runs in the transaction that records it, and the units can't be put back twice.
        order: Order = ctx.subject
        if not Shipment.objects.filter(order=order, status=ShipmentStatus.RETURNING).exists():
            Product.objects.release(order)
        order.move_to(OrderStatus.CANCELLED, note=_why_undone(ctx))

    @step(goes_to=("ask_for_payment",))
    def assess_risk(self, ctx: Context) -> Outcome | None:
        order: Order = ctx.subject
        if not risk.needs_review(order.total):
            return Goto("ask_for_payment")
        order.move_to(OrderStatus.IN_REVIEW)
        return None

    @step(goes_to=("return_payments",))
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
        return self._give_up(OrderStatus.REJECTED, f"Rejected by {signal.actor}.")

    @review.on_timeout
    def nobody_looked(self, ctx: Context) -> Outcome:
        return self._give_up(OrderStatus.REJECTED, "Nobody reviewed it in time.")

    @step(goes_to=("await_payment",))
    def ask_for_payment(self, ctx: Context) -> Outcome | None:
        order: Order = ctx.subject
        if order.card:
            order.move_to(OrderStatus.CHARGING)
            return None
        order.move_to(OrderStatus.AWAITING_PAYMENT)
        return Goto("await_payment")

    @activity(goes_to=("book_payment",), timeout=30, lease=LEASE)
    def charge(self, ctx: Context) -> Outcome:
        try:
            taken = payments.charge(ctx.subject, key=ctx.idempotency_key)
        except payments.CardDeclinedError as error:
            # Fail and Retry promise that nothing was done, so that there is nothing to undo.
            return Fail(str(error))
        except UnavailableError as error:
            return Retry(str(error))
        # NoAnswerError is not caught: an exception says that nobody knows. The next attempt has the same key.
        return Goto("book_payment", updates={"payment": taken})

    @charge.compensation
    def refund_charge(self, ctx: Context, result: dict[str, Any] | None) -> None:
        # Without a result no attempt heard what came of it. The provider knows, by the key that we charged under.
        for taken in _paid_in(result) or payments.charged_under(str(ctx.forward_idempotency_key)):
            _give_back(ctx, taken)

    @step(goes_to=("send_reminder", "return_payments"))
    def await_payment(self, ctx: Context) -> Outcome:
        return Await(PAYMENT_SUCCEEDED, PAYMENT_DECLINED, timeout=REMIND_AFTER)

    @await_payment.on_signal
    def payment_answered(self, ctx: Context, signal: Signal) -> Outcome | dict[str, Any]:
        taken = _told_by(signal, ctx.subject)
        if signal.name == PAYMENT_DECLINED:
            bookkeeping.book_payment(ctx.subject, taken, PaymentStatus.DECLINED, at=signal.received_at)
            return self._payment_declined(ctx)
        return {"payment": taken}

    @await_payment.on_timeout
    def payment_is_late(self, ctx: Context) -> Outcome:
        if ctx.subject.reminders < MAX_REMINDERS:
            return Goto("send_reminder")
        return self._give_up(OrderStatus.UNPAID, f"Not paid after {MAX_REMINDERS} reminders.")

    @await_payment.compensation
    def refund_payment(self, ctx: Context, result: dict[str, Any] | None) -> None:
        # Without a result the customer may have paid all the same: the webhook is late, or lies in the mailbox of an
        # order that was cancelled first. The provider knows.
        for taken in _paid_in(result) or payments.received_for(ctx.subject):
            _give_back(ctx, taken)

    @step
    def book_payment(self, ctx: Context) -> Outcome | None:
        order: Order = ctx.subject
        payment = bookkeeping.book_payment(order, Taken.from_json(ctx["payment"]), at=ctx.now)
        if payment.amount != order.total:
            return Fail(f"{payment.provider_id} paid {payment.amount}, but {order.number} costs {order.total}")
        order.move_to(OrderStatus.PAID)
        return None

    @activity(timeout=60, lease=LEASE)
    def ship(self, ctx: Context) -> Outcome | dict[str, Any]:
        try:
            parcel = carrier.book(ctx.subject, key=ctx.idempotency_key)
        except carrier.UndeliverableError as error:
            return Fail(str(error))
        except UnavailableError as error:
            return Retry(str(error))
        while not parcel.has_label:
            # A label may take longer than a lease lasts: this says that we are still at it. If the customer cancels
            # meanwhile, it raises LeaseLost, and the undo takes over.
            ctx.heartbeat()
            time.sleep(LABEL_PAUSE)
            parcel = carrier.look(parcel.tracking_number)
        return {"tracking_number": parcel.tracking_number}

    @ship.compensation
    def recall_parcel(self, ctx: Context, result: dict[str, Any] | None) -> None:
        known = result["tracking_number"] if result else None
        tracking_number = known or carrier.booked_under(str(ctx.forward_idempotency_key))
        if tracking_number is not None:
            parcel = carrier.recall(tracking_number, ctx.subject)
            bookkeeping.note_recalled(ctx.subject, parcel, at=ctx.now)

    @step
    def wait_for_delivery(self, ctx: Context) -> Outcome:
        order: Order = ctx.subject
        Shipment.objects.create(order=order, tracking_number=ctx["tracking_number"], shipped_at=ctx.now)
        order.move_to(OrderStatus.SHIPPED)
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

    # Nothing failed here, and nothing is undone: these two are an end that the process knows of.

    @activity(timeout=60, lease=LEASE)
    def return_payments(self, ctx: Context) -> None:
        # We have not asked for the money, or asked in vain. Some customers pay before they are asked, or when we have
        # just given up.
        for taken in payments.received_for(ctx.subject):
            _give_back(ctx, taken)

    @step
    def cancel_order(self, ctx: Context) -> Outcome:
        order: Order = ctx.subject
        Product.objects.release(order)
        order.move_to(OrderStatus(ctx["ends_as"]), note=ctx["reason"])
        return Finish({"outcome": order.status, "reason": order.note})

    def _payment_declined(self, ctx: Context) -> Outcome:
        declines = ctx.get("declines", 0) + 1
        if declines >= MAX_DECLINES:
            return self._give_up(OrderStatus.UNPAID, f"The card was declined {declines} times.")
        # The customer may try another card, within the same hour.
        return Await(PAYMENT_SUCCEEDED, PAYMENT_DECLINED, timeout=ctx.deadline, updates={"declines": declines})

    def _give_up(self, status: OrderStatus, reason: str) -> Goto:
        return Goto("return_payments", updates={"ends_as": status.value, "reason": reason})


def start_fulfilment(order: Order, *, actor: object = None) -> WorkflowInstance:
    """The order's instance: started, or the one there is. In a transaction, both commit or neither."""
    return engine.start(FulfilOrder, subject=order, idempotency_key=f"order-{order.pk}", actor=actor)


def _told_by(signal: Signal, order: Order) -> Taken:
    """What the webhook told us; nothing, if the signal was sent by hand.

    Then the customer paid the whole sum some other way: `manage.py workflow_signal shop.order:42 payment_succeeded`.
    """
    if signal.data:
        return Taken.from_json(signal.data)
    return Taken(f"by-hand-{signal.id}", order.total_minor, order.currency)


def _paid_in(result: Mapping[str, Any] | None) -> list[Taken]:
    """The payment that a step ended with; nothing, if it ended otherwise or nobody knows how."""
    return [Taken.from_json(result["payment"])] if result and "payment" in result else []


def _give_back(ctx: Context, taken: Taken) -> None:
    """Refund what was taken. May run twice: the provider knows our key, and our books know its names.

    A key is for one request. Where there may be several, each gets one that is made from it.
    """
    refund = payments.refund(taken, ctx.subject, key=f"{ctx.idempotency_key}-{taken.payment_id}")
    bookkeeping.book_refund(ctx.subject, taken, refund, at=ctx.now)


def _why_undone(ctx: Context) -> str:
    """The reason given with the cancellation, else the failure that led to the undo: the history has both."""
    history = WorkflowEvent.objects.filter(instance=ctx.instance_id)
    reason = history.filter(kind="workflow_compensating").latest("seq").data.get("reason")
    return str(reason or history.filter(kind="step_failed").latest("seq").data["error"]["message"])[:200]
