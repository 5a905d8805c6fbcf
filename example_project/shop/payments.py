"""The payment provider's API, as far as the shop uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from . import calls
from .money import Money

if TYPE_CHECKING:
    from .models import Order


class CardDeclinedError(Exception):
    """The card was declined, so nothing was taken."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Money that the provider took from a customer. In a workflow's context it is a plain dict of the same names."""

    payment_id: str
    amount_minor: int
    currency: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["payment_id"], data["amount_minor"], data["currency"])

    @property
    def amount(self) -> Money:
        return Money(self.amount_minor, self.currency)


def charge(order: Order, *, key: str) -> Taken:
    """Take what the order costs from its stored card, once per key. Raises CardDeclinedError."""
    asked = {
        "reference": order.number,
        "card": order.card,
        "amount_minor": order.total_minor,
        "currency": order.currency,
    }
    try:
        return _taken(calls.post("/charges", asked, key=key))
    except calls.RefusedError as error:
        if error.code == "card_declined":
            raise CardDeclinedError(f"The card for {order.number} was declined.") from error
        raise


def charged_under(key: str) -> list[Taken]:
    """What was taken when somebody asked with this key: one payment, or nothing."""
    return [_taken(charge) for charge in calls.get("/charges", key=key)["charges"]]


def received_for(order: Order) -> list[Taken]:
    """What customers paid for the order, no matter how, and whether we heard of it or not."""
    return [_taken(charge) for charge in calls.get("/charges", reference=order.number)["charges"]]


def refund(taken: Taken, order: Order, *, key: str) -> str:
    """Give the money back, once. Returns the provider's name for the refund."""
    try:
        answer = calls.post(f"/charges/{taken.payment_id}/refund", {"reference": order.number}, key=key)
    except calls.RefusedError as error:
        if error.code != "already_refunded":
            raise
        answer = dict(error.body)
    return str(answer["refund"])


def _taken(charge: Mapping[str, Any]) -> Taken:
    return Taken(charge["id"], charge["amount_minor"], charge["currency"])
