"""What the payment provider posts to us: how it is signed, and what an event looks like.

The signature header is `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over the time, a full stop and the body as it
came. The body is checked before it is read as JSON, because JSON that was parsed and written again is other bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from typing import Any

from .money import CURRENCIES

SIGNATURE_HEADER = "Shop-Signature"
TOLERANCE_SECONDS = 300
SIGNATURE = re.compile(r"t=(?P<time>[0-9]{1,12}),v1=(?P<digest>[0-9a-f]{64})")
IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SignatureError(Exception):
    """The request was not signed by someone who knows the secret, or too long ago."""


class MalformedEventError(Exception):
    """The body is signed, but is not an event as the provider documents it."""


def sign(body: bytes, *, secret: str, timestamp: int) -> str:
    """The header's value for a body posted at `timestamp` (unix seconds)."""
    return f"t={timestamp},v1={_digest(body, secret, timestamp)}"


def verify(body: bytes, header: str, *, secret: str, now: float) -> None:
    """Raises SignatureError. An old signature is refused, so that a recorded request can't be played again for ever."""
    match = SIGNATURE.fullmatch(header)
    if match is None:
        raise SignatureError("The signature is missing or malformed.")
    timestamp = int(match["time"])
    if not hmac.compare_digest(match["digest"], _digest(body, secret, timestamp)):
        raise SignatureError("The signature does not fit the body.")
    if abs(now - timestamp) > TOLERANCE_SECONDS:
        raise SignatureError("The signature is too old, or from the future.")


def _digest(body: bytes, secret: str, timestamp: int) -> str:
    return hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    """One thing that happened at the provider. `id` names the event: the same id is the same event, sent again."""

    id: str
    kind: str
    order: str
    payment_id: str
    amount_minor: int
    currency: str

    @classmethod
    def from_body(cls, body: bytes) -> PaymentEvent:
        try:
            data = json.loads(body)
            event = cls(**{name: data[name] for name in cls.__slots__})
        except (ValueError, KeyError, TypeError):
            raise MalformedEventError("The body is not a payment event.") from None
        event._check()
        return event

    def to_body(self) -> bytes:
        return json.dumps(self.as_dict()).encode()

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def _check(self) -> None:
        for name in ("id", "kind", "order", "payment_id"):
            value = getattr(self, name)
            if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
                raise MalformedEventError(f"{name} is not an identifier.")
        if type(self.amount_minor) is not int or not 0 < self.amount_minor < 2**31:
            raise MalformedEventError("amount_minor is not a positive number of minor units.")
        if self.currency not in CURRENCIES:
            raise MalformedEventError("currency is not one we sell in.")
