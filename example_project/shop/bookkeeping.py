"""What the shop writes down about the world outside.

An undo that calls another server is repeated if its worker dies before that is recorded, and its writes with it. So
each of these is written so that twice is as good as once: a row is known by the name that the other side gave it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from .models import Order, Payment, PaymentStatus, Refund, Shipment

if TYPE_CHECKING:
    from .carrier import Parcel
    from .payments import Taken


def book_payment(
    order: Order, taken: Taken, status: PaymentStatus = PaymentStatus.SUCCEEDED, *, at: datetime
) -> Payment:
    """The payment as a row: a new one, or the one that there is. Raises IntegrityError if that is another order's."""
    values = {"amount_minor": taken.amount_minor, "currency": taken.currency}
    payment, _ = Payment.objects.get_or_create(
        order=order, provider_id=taken.payment_id, defaults={"status": status, "received_at": at, **values}
    )
    return payment


@transaction.atomic
def book_refund(order: Order, taken: Taken, refund: str, *, at: datetime) -> None:
    """A refund, and the payment that it gives back, in case nobody came to book that."""
    payment = book_payment(order, taken, at=at)
    Refund.objects.get_or_create(payment=payment, defaults={"provider_id": refund, "refunded_at": at})


def note_recalled(order: Order, parcel: Parcel, *, at: datetime) -> None:
    """What became of a parcel that was called back, in case nobody came to note that it was booked."""
    Shipment.objects.update_or_create(
        order=order,
        defaults={"status": parcel.status},
        create_defaults={"status": parcel.status, "tracking_number": parcel.tracking_number, "shipped_at": at},
    )
