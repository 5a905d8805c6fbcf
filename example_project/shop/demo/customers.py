"""The customers of the demo. Who does what follows from the order's number, so every run is the same."""

from __future__ import annotations

import enum
import zlib
from collections import Counter
from typing import TYPE_CHECKING

from django.test import Client
from django.urls import reverse

from example_project.shop.models import Order, OrderStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from example_project.shop.payment_page import PaymentPage

FICKLE_PERCENT = 9


class Habit(enum.Enum):
    """How a customer without a stored card pays. The number is how many in a hundred do so."""

    PROMPTLY = 56
    EARLY = 12  # before the order asks for it
    TWICE = 8  # the provider sends the event a second time
    SECOND_CARD = 6  # the first is declined
    DECLINED = 5  # so is the second
    NEVER = 13

    @classmethod
    def of(cls, order: Order) -> Habit:
        draw = zlib.crc32(f"habit {order.number}".encode()) % 100
        for habit in cls:
            draw -= habit.value
            if draw < 0:
                break
        # An order of what is scarce may end at once, and then nobody is left to ask for the money.
        return cls.PROMPTLY if habit is cls.EARLY and not is_plentiful(order) else habit


def is_plentiful(order: Order) -> bool:
    """Whether there is enough for everybody."""
    return all(line.product.received >= 50 for line in order.lines.select_related("product"))


def changes_mind(order: Order) -> bool:
    """Whether this customer cancels when the parcel is on its way."""
    return zlib.crc32(f"keeps {order.number}".encode()) % 100 < FICKLE_PERCENT


class Customers:
    def __init__(self, orders: Iterable[Order], page: PaymentPage) -> None:
        orders = list(orders)
        self.acted: Counter[Habit] = Counter()
        self.fickle = {order.pk for order in orders if changes_mind(order)}
        """Orders that are going to be cancelled if they are shipped."""
        self._page, self._browser = page, Client(SERVER_NAME="localhost")
        self._habits = {order.pk: Habit.of(order) for order in orders if not order.card}
        self._to_ask = {pk for pk, habit in self._habits.items() if habit not in (Habit.EARLY, Habit.NEVER)}
        self._to_cancel = set(self.fickle)

    @property
    def silent(self) -> set[int]:
        """Orders that nobody is going to pay."""
        return {pk for pk, habit in self._habits.items() if habit is Habit.NEVER}

    def pay_early(self, orders: Iterable[Order]) -> None:
        """Those who do don't wait until they are asked."""
        for order in orders:
            if self._habits.get(order.pk) is Habit.EARLY:
                self._act(order, Habit.EARLY)

    def pay_what_is_asked(self) -> None:
        """Those whose order has come to ask for the money, and who have not acted yet, do."""
        for order in Order.objects.filter(status=OrderStatus.AWAITING_PAYMENT, pk__in=self._to_ask).order_by("pk"):
            self._to_ask.remove(order.pk)
            self._act(order, self._habits[order.pk])

    def change_their_minds(self) -> None:
        """Those who do press the button on the page of their order."""
        for order in Order.objects.filter(status=OrderStatus.SHIPPED, pk__in=self._to_cancel).order_by("pk"):
            self._to_cancel.remove(order.pk)
            self._browser.post(reverse("shop:cancel", args=[order.token]))

    def _act(self, order: Order, habit: Habit) -> None:
        self.acted[habit] += 1
        if habit in (Habit.SECOND_CARD, Habit.DECLINED):
            self._page.decline(order, attempt=1)
        if habit is Habit.DECLINED:
            self._page.decline(order, attempt=2)
        elif habit is Habit.SECOND_CARD:
            self._page.pay(order, attempt=2)
        else:
            self._page.pay(order, times=2 if habit is Habit.TWICE else 1)
