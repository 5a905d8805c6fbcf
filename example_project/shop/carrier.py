"""The parcel service, simulated: hands out tracking numbers, and has no room for a parcel now and then."""

from __future__ import annotations

import zlib


class CarrierBusyError(Exception):
    """No van has room at the moment. Later one will."""

    def __init__(self, order_number: str) -> None:
        super().__init__(f"no van has room for {order_number} at the moment")


def book_parcel(order_number: str, *, attempt: int) -> str:
    """The tracking number. One parcel in twelve finds no room at the first attempt; always the same ones."""
    checksum = zlib.crc32(order_number.encode())
    if attempt == 1 and checksum % 12 == 0:
        raise CarrierBusyError(order_number)
    return f"PX{checksum:010d}"
