"""The payment provider, simulated: takes customers' money and tells the shop by signed webhooks.

It behaves like real ones: an event goes out again when the shop answered with an error, and now and then for no
reason at all. It remembers what it took, so that the demo can hold the shop's books against it.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings
from django.test import Client
from django.urls import reverse

from .webhooks import SIGNATURE_HEADER, PaymentEvent, sign
from .workflows import PAYMENT_DECLINED, PAYMENT_SUCCEEDED

if TYPE_CHECKING:
    from .models import Order

GIVE_UP_AFTER = 10


@dataclass(slots=True)
class PaymentProvider:
    """Events queue up as customers act and go out with `deliver()`."""

    captured: Counter[str] = field(default_factory=Counter)
    """Minor units taken, by currency."""
    answers: Counter[int] = field(default_factory=Counter)
    """How often the shop answered with which status."""
    _queue: list[tuple[PaymentEvent, int]] = field(default_factory=list)
    # The provider has no session and knows no page of the shop but the webhook. It is outside: no CSRF token either.
    _client: Client = field(
        default_factory=lambda: Client(enforce_csrf_checks=True, raise_request_exception=False, SERVER_NAME="localhost")
    )

    def pay(self, order: Order, *, attempt: int = 1, times: int = 1) -> None:
        """The customer pays; the event goes out `times` times."""
        event = self._event(order, PAYMENT_SUCCEEDED, attempt)
        self.captured[order.currency] += order.total_minor
        self._queue.extend([(event, 0)] * times)

    def decline(self, order: Order, *, attempt: int = 1) -> None:
        """The customer's card is refused."""
        self._queue.append((self._event(order, PAYMENT_DECLINED, attempt), 0))

    def deliver(self) -> int:
        """Post what is queued once. What the shop refused stays for the next call. Returns how many are left."""
        queue, self._queue = self._queue, []
        for event, failures in queue:
            status = self.post(event)
            self.answers[status] += 1
            if status >= 500 and failures + 1 < GIVE_UP_AFTER:
                self._queue.append((event, failures + 1))
        return len(self._queue)

    def post(self, event: PaymentEvent) -> int:
        """The status the shop answers with."""
        body = event.to_body()
        signature = sign(body, secret=settings.SHOP_WEBHOOK_SECRET, timestamp=int(time.time()))
        response = self._client.post(
            reverse("shop:payment_webhook"),
            data=body,
            content_type="application/json",
            headers={SIGNATURE_HEADER: signature},
        )
        return response.status_code

    @staticmethod
    def _event(order: Order, kind: str, attempt: int) -> PaymentEvent:
        # Named after order and attempt, so that a customer who pays twice in one attempt has paid once.
        name = f"{order.token.hex[:12]}_{attempt}"
        return PaymentEvent(
            id=f"evt_{name}",
            kind=kind,
            order=order.number,
            payment_id=f"pay_{name}",
            amount_minor=order.total_minor,
            currency=order.currency,
        )
