"""The play itself: workers, customers, staff and the payment provider act until every order rests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from example_project.shop import risk
from example_project.shop.models import Order, OrderStatus
from example_project.shop.payment_page import PaymentPage
from example_project.shop.workflows import start_fulfilment

from .customers import Customers, Habit, is_plentiful

if TYPE_CHECKING:
    from collections.abc import Callable

    from .staff import Reviewer
    from .workers import Workers

MOVING = (OrderStatus.PLACED, OrderStatus.RESERVED, OrderStatus.CHARGING, OrderStatus.PAID)
AT_A_TIME = 30
PATIENCE = 40.0
"""Seconds without anything happening after which the play is broken off."""


class Play:
    """An order rests when nobody in this play is going to move it: it is over, or shipped, or waits in vain."""

    def __init__(self, orders: list[Order], reviewer: Reviewer) -> None:
        self.orders = orders
        self._to_start = list(orders)
        self._page = PaymentPage()
        self._customers = Customers(orders, self._page)
        self._reviewer = reviewer
        left_open = [order.pk for order in orders if reviewer.leaves_open(order)]
        self._moving = Order.objects.filter(
            Q(status__in=MOVING)
            | (Q(status=OrderStatus.AWAITING_PAYMENT) & ~Q(pk__in=self._customers.silent))
            | (Q(status=OrderStatus.IN_REVIEW) & ~Q(pk__in=left_open))
            | Q(status=OrderStatus.SHIPPED, pk__in=self._customers.fickle)
        )

    def run(self, workers: Workers, progress: Callable[[int], None]) -> None:
        """Call `progress` with the number of orders that rest, until all do or nothing happens any more."""
        last, changed_at = -1, time.monotonic()
        while last < len(self.orders) and time.monotonic() < changed_at + PATIENCE:
            workers.check()
            self._everybody_acts()
            resting = len(self.orders) - self._moving.count()
            if resting != last:
                last, changed_at = resting, time.monotonic()
                progress(resting)
            time.sleep(0.2)

    def _everybody_acts(self) -> None:
        newcomers = self._newcomers()
        self._customers.pay_early(newcomers)
        self._customers.pay_what_is_asked()
        # Requests of a real web server each have a transaction of their own. But SQLite has one writer at a time, and
        # all these clicks would queue for it one by one between the workers.
        with transaction.atomic():
            # For those who paid early no workflow runs yet. So the shop answers 503, and the provider sends that again:
            # when the workflow is there, but does not ask for the payment yet. The mailbox keeps it.
            self._page.deliver()
            for order in newcomers:
                start_fulfilment(order, actor="demo")
            self._page.deliver()
            self._reviewer.decide()
            self._customers.change_their_minds()

    def _newcomers(self) -> list[Order]:
        """Orders come in as the workers get on with those that came before."""
        under_way = self._moving.count() - len(self._to_start)
        free = max(0, AT_A_TIME - under_way)
        newcomers, self._to_start = self._to_start[:free], self._to_start[free:]
        return newcomers

    def webhooks(self) -> str:
        """What the provider had to do to be heard."""
        posted, refused = self._page.answers.total(), self._page.answers[503]
        acted = self._customers.acted
        declined = acted[Habit.SECOND_CARD] + 2 * acted[Habit.DECLINED]
        return (
            f"{posted} from the payment provider: {refused} too early (answered 503, sent again),"
            f" {acted[Habit.TWICE]} twice, {declined} about a declined card"
        )

    def unfinished(self) -> list[str]:
        """Numbers of the orders that ought to have come further."""
        return [order.number for order in self._moving.all()]


def to_be_interrupted(orders: list[Order]) -> str:
    """The number of the order whose charge is going to be the scene of the accident; "" if there is none that fits.

    It is one of the first, so that the recovery is over before the demo is.
    """
    charged = [order for order in orders if order.card and "declined" not in order.card]
    candidates = [order.number for order in charged if is_plentiful(order) and not risk.needs_review(order.total)]
    return candidates[min(len(candidates) - 1, 5)] if candidates else ""
