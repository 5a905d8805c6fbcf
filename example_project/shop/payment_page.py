"""The payment provider's own page, and the signed webhooks by which the provider tells the shop what happened there.

The money is taken by the provider's server, see `example_project.outside`. What this simulates is what a browser and a
real provider would do with our web server: an event goes out again when the shop answered with an error, and now and
then for no reason at all.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings
from django.test import Client
from django.urls import reverse

from . import calls
from .webhooks import SIGNATURE_HEADER, PaymentEvent, sign
from .workflows import PAYMENT_DECLINED, PAYMENT_SUCCEEDED

if TYPE_CHECKING:
    from .models import Order

GIVE_UP_AFTER = 10


@dataclass(slots=True)
class PaymentPage:
    """Events queue up as customers act and go out with `deliver()`."""

    answers: Counter[int] = field(default_factory=Counter)
    """How often the shop answered with which status."""
    _queue: list[tuple[PaymentEvent, int]] = field(default_factory=list)
    # The provider has no session and knows no page of the shop but the webhook. It is outside: no CSRF token either.
    _client: Client = field(
        default_factory=lambda: Client(enforce_csrf_checks=True, raise_request_exception=False, SERVER_NAME="localhost")
    )

    def pay(self, order: Order, *, attempt: int = 1, times: int = 1) -> None:
        """The customer pays; the event goes out `times` times. Raises UnavailableError when nobody serves the page."""
        # Named after order and attempt, so that a customer who pays twice in one attempt has paid once.
        key = f"page_{order.token.hex}_{attempt}"
        asked = {"reference": order.number, "amount_minor": order.total_minor, "currency": order.currency}
        payment_id = calls.post("/page", asked, key=key)["id"]
        self._queue.extend([(_event(order, PAYMENT_SUCCEEDED, payment_id), 0)] * times)

    def decline(self, order: Order, *, attempt: int = 1) -> None:
        """The customer's card is refused."""
        self._queue.append((_event(order, PAYMENT_DECLINED, f"pay_{order.token.hex[:12]}_{attempt}"), 0))

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


def _event(order: Order, kind: str, payment_id: str) -> PaymentEvent:
    return PaymentEvent(
        id=f"evt_{payment_id}",
        kind=kind,
        order=order.number,
        payment_id=payment_id,
        amount_minor=order.total_minor,
        currency=order.currency,
    )
