"""The play itself: a worker, customers, staff and the payment provider take turns until every order rests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.db.models import Q

from example_project.shop.models import Order, OrderStatus
from example_project.shop.provider import PaymentProvider
from example_project.shop.workflows import start_fulfilment

from .customers import Customers, Habit
from .workers import EmbeddedWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from .staff import Reviewer

MOVING = (OrderStatus.PLACED, OrderStatus.RESERVED, OrderStatus.PAID)
PATIENCE = 10.0
"""Seconds without anything happening after which the play is broken off."""


class Play:
    """An order rests when nobody in this play is going to move it: it is over, or shipped, or waits in vain."""

    def __init__(self, orders: list[Order], reviewer: Reviewer) -> None:
        self.orders = orders
        self.provider = PaymentProvider()
        self._customers = Customers(orders, self.provider)
        self._reviewer = reviewer
        left_open = [order.pk for order in orders if reviewer.leaves_open(order)]
        self._moving = Order.objects.filter(
            Q(status__in=MOVING)
            | (Q(status=OrderStatus.AWAITING_PAYMENT) & ~Q(pk__in=self._customers.silent))
            | (Q(status=OrderStatus.IN_REVIEW) & ~Q(pk__in=left_open))
        )

    def open(self) -> None:
        """Some pay already; then an instance per order is started."""
        self._customers.pay_early()
        # No workflow runs for these orders yet, so the shop answers 503 and the provider will try again.
        self.provider.deliver()
        for order in self.orders:
            start_fulfilment(order, actor="demo")
        # It does so now, when the instances are there but none asks for a payment: the mailbox keeps the signals.
        self.provider.deliver()

    def run(self, progress: Callable[[int], None]) -> None:
        """Call `progress` with the number of orders that rest, until all do or nothing happens any more."""
        watch = _Watch(self._resting, progress)
        worker = EmbeddedWorker(watch.look)
        while not watch.is_over(len(self.orders)):
            worker.work()
            self._customers.pay_what_is_asked()
            self._reviewer.decide()
            self.provider.deliver()

    def webhooks(self) -> str:
        """What the provider had to do to be heard."""
        posted, refused = self.provider.answers.total(), self.provider.answers[503]
        acted = self._customers.acted
        declined = acted[Habit.SECOND_CARD] + 2 * acted[Habit.DECLINED]
        return (
            f"{posted} from the payment provider: {refused} too early (answered 503, sent again),"
            f" {acted[Habit.TWICE]} twice, {declined} about a declined card"
        )

    def unfinished(self) -> list[str]:
        """Numbers of the orders that ought to have come further."""
        return [order.number for order in self._moving.all()]

    def _resting(self) -> int:
        return len(self.orders) - self._moving.count()


class _Watch:
    """Counts now and then, and notices when the count stands still."""

    def __init__(self, count: Callable[[], int], progress: Callable[[int], None]) -> None:
        self._count, self._progress = count, progress
        self._last, self._looked_at = -1, 0.0
        self._changed_at = time.monotonic()

    def look(self) -> None:
        now = time.monotonic()
        if now < self._looked_at + 0.1:
            return
        self._looked_at, count = now, self._count()
        if count != self._last:
            self._last, self._changed_at = count, now
            self._progress(count)

    def is_over(self, total: int) -> bool:
        """Waits a moment before it looks, because what is tried again later needs a moment."""
        time.sleep(0.1)
        self.look()
        return self._last >= total or time.monotonic() > self._changed_at + PATIENCE
