"""What the tests of the order's workflow have in common: one product, orders of it, and a real world outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import TestCase

from example_project.shop import calls
from example_project.shop.models import Order, Price, Product
from example_project.shop.money import Money
from example_project.shop.workflows import start_fulfilment
from workflow_engine.models import WorkflowEvent
from workflow_engine.testing import WorkflowTestMixin

if TYPE_CHECKING:
    from example_project.outside.luck import Mood
    from example_project.outside.server import Server
    from workflow_engine.models import WorkflowInstance


class FulfilmentTestCase(WorkflowTestMixin, TestCase):
    @pytest.fixture(autouse=True)
    def _world(self, outside: Server) -> None:
        self.outside = outside

    def setUp(self) -> None:
        self.pan = Product.objects.create(sku="PAN", name="Crêpe pan", received=10, stock=10)
        Price.objects.create(product=self.pan, currency="EUR", amount_minor=45_00)

    def begin(self, quantity: int = 2, card: str = "") -> tuple[Order, WorkflowInstance]:
        """An order of pans, with its workflow run as far as it gets at once."""
        order = Order.objects.place(
            [(self.pan, quantity, Money(45_00, "EUR"))],
            number="S-1",
            customer="Zoë",
            email="zoe@example.com",
            card=card,
            currency="EUR",
        )
        instance = start_fulfilment(order)
        self.drain()
        return order, instance

    def pay(self, instance: WorkflowInstance, *, declined: bool = False, **changes: Any) -> None:
        """The customer pays on the payment page, and the webhook tells the workflow."""
        data = {"payment_id": "pay_declined", "amount_minor": 90_00, "currency": "EUR"} | changes
        if not declined:
            asked = {"reference": "S-1", "amount_minor": data["amount_minor"], "currency": data["currency"]}
            data["payment_id"] = calls.post("/page", asked, key=f"page_{instance.pk}")["id"]
        name = "payment_declined" if declined else "payment_succeeded"
        self.signal(instance, name, data, idempotency_key=f"evt_{data['payment_id']}")

    def where(self, order: Order, instance: WorkflowInstance) -> tuple[str, str, str]:
        """The order's status, the instance's, and the step it is at."""
        order.refresh_from_db()
        found = self.reload(instance)
        return order.status, found.status, found.current_step

    def stock(self) -> int:
        return Product.objects.get().stock

    def plan(self, operation: str, *moods: Mood) -> None:
        """What goes wrong with the requests for this operation, one after the other."""
        self.outside.luck.moods = {**self.outside.luck.moods, (operation, "S-1"): moods}

    def let_retries_come_due(self) -> None:
        """Three times, for what fails twice: the third has nothing left to do."""
        for _ in range(3):
            self.shift_time(minutes=1)

    def charges(self) -> list[tuple[str, int, str | None]]:
        """The provider's: order, amount, and the refund if there is one."""
        found = self.outside.ledger.as_dict()["charges"]
        return [(charge["reference"], charge["amount_minor"], charge["refund"]) for charge in found]

    def parcels(self) -> list[tuple[str, str, str]]:
        """The carrier's: order, tracking number and status."""
        found = self.outside.ledger.as_dict()["parcels"]
        return [(parcel["reference"], parcel["tracking_number"], parcel["status"]) for parcel in found]

    def counts(self) -> dict[str, int]:
        """How often the world outside was asked for what, and what went wrong there."""
        found: dict[str, int] = self.outside.ledger.as_dict()["counts"]
        return found

    def failures(self, instance: WorkflowInstance) -> list[tuple[str, str]]:
        """Step and type of each failed attempt, undos too."""
        kinds = ("step_failed", "compensation_attempt_failed", "compensation_failed")
        history = WorkflowEvent.objects.filter(instance=instance, kind__in=kinds).order_by("seq")
        return [(event.step, event.data["error"]["type"]) for event in history]
