"""Orders as an operations team knows them: some wait, some failed, some are done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from example_project.shop.models import Order
from workflow_engine import (
    Await,
    Context,
    Fail,
    Goto,
    RetryPolicy,
    Signal,
    Sleep,
    Workflow,
    activity,
    clock,
    engine,
    step,
)
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain

CARRIER = {"is_down": True}
"""What the carrier's server does; a test puts it back into service."""

with registry.isolated():

    class DeliverOrder(Workflow):
        """Reserve, charge, ship, and ask later whether all is well."""

        name = "deliver_order"
        label = "Deliver order"

        @step
        def reserve_stock(self, ctx: Context) -> dict[str, Any]:
            return {"reserved": 2}

        @step(goes_to=("send_reminder", "cancel_order"))
        def await_payment(self, ctx: Context) -> Await:
            return Await("payment_succeeded", "payment_declined", timeout=timedelta(hours=1))

        @await_payment.on_signal
        def payment_answered(self, ctx: Context, signal: Signal) -> Fail | dict[str, Any]:
            return Fail("card declined") if signal.name == "payment_declined" else {"payment": signal.data}

        @await_payment.on_timeout
        def payment_is_late(self, ctx: Context) -> Goto:
            return Goto("send_reminder")

        @activity(timeout=30, lease=20, retry=RetryPolicy(max_attempts=3, initial_delay=20, multiplier=3, jitter=False))
        def ship(self, ctx: Context) -> dict[str, Any]:
            if CARRIER["is_down"] and ctx.input.get("carrier") == "slow":
                raise ConnectionError("carrier.example answered 503 Service Unavailable")
            return {"tracking_number": "P-4711"}

        @step
        def wait_for_delivery(self, ctx: Context) -> Sleep:
            return Sleep(timedelta(days=5))

        @step
        def follow_up(self, ctx: Context) -> None:
            pass

        @step(goes_to=("await_payment",))
        def send_reminder(self, ctx: Context) -> Goto:
            return Goto("await_payment", updates={"reminders": ctx.get("reminders", 0) + 1})

        @step
        def cancel_order(self, ctx: Context) -> None:
            pass


def placed(number: int, **more: Any) -> WorkflowInstance:
    """An order that waits for its payment."""
    context = {"amount": "42.00", "currency": "EUR", "card_number": "4242 4242 4242 4242", **more}
    subject = (Order._meta.label_lower, str(number))
    row = engine.start(
        "deliver_order", subject=subject, context=context, idempotency_key=f"order-{number}", actor="web"
    )
    return moved(row)


def moved(row: WorkflowInstance, **later: float) -> WorkflowInstance:
    """After so much time, and after what became due."""
    clock.shift(timedelta(**later))
    drain()
    row.refresh_from_db()
    return row


def failed(number: int) -> WorkflowInstance:
    """An order whose carrier did not answer, however often it was asked."""
    clock.shift(-timedelta(hours=2, minutes=14))  # the web server's clock is not shifted: it ends at its now
    row = placed(number, carrier="slow")
    moved(row, minutes=64)  # a reminder is sent
    engine.signal(row, "payment_succeeded", {"id": "pay_81", "amount": "42.00"}, actor="stripe")
    moved(row, minutes=26)
    moved(row, seconds=21)
    moved(row, seconds=61)
    clock.reset_shift()
    return row
