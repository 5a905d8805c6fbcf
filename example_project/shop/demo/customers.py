"""The customers of the demo. Who does what follows from the order's number, so every run is the same."""

from __future__ import annotations

import enum
import zlib
from collections import Counter
from typing import TYPE_CHECKING

from example_project.shop import risk
from example_project.shop.models import Order, OrderStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from example_project.shop.provider import PaymentProvider


class Habit(enum.Enum):
    """How a customer pays. The number is how many in a hundred do so."""

    PROMPTLY = 56
    EARLY = 12  # before the order asks for it
    TWICE = 8  # the provider sends the event a second time
    SECOND_CARD = 6  # the first is declined
    DECLINED = 5  # so is the second
    NEVER = 13

    @classmethod
    def of(cls, order: Order) -> Habit:
        draw = zlib.crc32(f"pays {order.number}".encode()) % 100
        for habit in cls:
            draw -= habit.value
            if draw < 0:
                break
        return cls.PROMPTLY if habit is cls.EARLY and not may_pay_early(order) else habit


def may_pay_early(order: Order) -> bool:
    """Whether the order is sure to be accepted: this shop can't give money back yet, so it is not to take it."""
    plentiful = all(line.product.received >= 100 for line in order.lines.select_related("product"))
    return plentiful and not risk.needs_review(order.total)


class Customers:
    def __init__(self, orders: Iterable[Order], provider: PaymentProvider) -> None:
        self.acted: Counter[Habit] = Counter()
        self._provider = provider
        self._habits = {order.pk: Habit.of(order) for order in orders}
        self._to_ask = {pk for pk, habit in self._habits.items() if habit not in (Habit.EARLY, Habit.NEVER)}

    @property
    def silent(self) -> set[int]:
        """Orders that nobody is going to pay."""
        return {pk for pk, habit in self._habits.items() if habit is Habit.NEVER}

    def pay_early(self) -> None:
        """Those who do don't wait until they are asked."""
        early = [pk for pk, habit in self._habits.items() if habit is Habit.EARLY]
        for order in Order.objects.filter(pk__in=early).order_by("pk"):
            self._act(order, Habit.EARLY)

    def pay_what_is_asked(self) -> None:
        """Those whose order has come to ask for the money, and who have not acted yet, do."""
        for order in Order.objects.filter(status=OrderStatus.AWAITING_PAYMENT, pk__in=self._to_ask).order_by("pk"):
            self._to_ask.remove(order.pk)
            self._act(order, self._habits[order.pk])

    def _act(self, order: Order, habit: Habit) -> None:
        self.acted[habit] += 1
        if habit in (Habit.SECOND_CARD, Habit.DECLINED):
            self._provider.decline(order, attempt=1)
        if habit is Habit.DECLINED:
            self._provider.decline(order, attempt=2)
        elif habit is Habit.SECOND_CARD:
            self._provider.pay(order, attempt=2)
        else:
            self._provider.pay(order, times=2 if habit is Habit.TWICE else 1)
