"""The parcel carrier's API, as far as the shop uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import calls

if TYPE_CHECKING:
    from .models import Order


class UndeliverableError(Exception):
    """The carrier does not go to that address."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """`has_label`: it can be handed over. `status`: booked, recalled, or returning to us."""

    tracking_number: str
    status: str
    has_label: bool


def book(order: Order, *, key: str) -> Parcel:
    """Have a parcel fetched, once per key. Its label may take a while. Raises UndeliverableError."""
    try:
        return _parcel(calls.post("/parcels", {"reference": order.number}, key=key))
    except calls.RefusedError as error:
        if error.code == "undeliverable":
            raise UndeliverableError(f"The carrier does not deliver {order.number}.") from error
        raise


def look(tracking_number: str) -> Parcel:
    """The parcel as it is now."""
    return _parcel(calls.get(f"/parcels/{tracking_number}"))


def booked_under(key: str) -> str | None:
    """The tracking number of what was booked when somebody asked with this key; None if nothing was."""
    try:
        return _parcel(calls.get("/parcels", key=key)).tracking_number
    except calls.RefusedError as error:
        if error.status == 404:
            return None
        raise


def recall(tracking_number: str, order: Order) -> Parcel:
    """Stop a parcel. One that is on the road already turns round."""
    return _parcel(calls.post(f"/parcels/{tracking_number}/recall", {"reference": order.number}))


def _parcel(data: Mapping[str, Any]) -> Parcel:
    return Parcel(data["tracking_number"], data["status"], data["has_label"])
