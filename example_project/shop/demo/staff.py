"""The member of staff of the demo, who answers most of the reviews on the page that real staff use."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from django.test import Client
from django.urls import reverse

from example_project.shop.models import Order, OrderStatus

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Reviewer:
    def __init__(self, user: User) -> None:
        self._client = Client(SERVER_NAME="localhost")
        self._client.force_login(user)
        self._decided: set[int] = set()

    def leaves_open(self, order: Order) -> bool:
        return self._opinion(order) is None

    def decide(self) -> None:
        """Look once at each order that is in review, and approve it, reject it or leave it for tomorrow."""
        for order in Order.objects.filter(status=OrderStatus.IN_REVIEW).exclude(pk__in=self._decided):
            self._decided.add(order.pk)
            if decision := self._opinion(order):
                self._client.post(reverse("shop:decide", args=[order.pk]), {"decision": decision})

    @staticmethod
    def _opinion(order: Order) -> str | None:
        return ("approve", "reject", None, "approve", "approve")[zlib.crc32(f"looks at {order.number}".encode()) % 5]
