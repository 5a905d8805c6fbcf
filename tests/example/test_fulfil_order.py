from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.test import TestCase

from example_project.shop import carrier
from example_project.shop.models import Order, Price, Product, Shipment
from example_project.shop.money import Money
from example_project.shop.workflows import FulfilOrder, start_fulfilment
from workflow_engine.testing import WorkflowTestMixin

if TYPE_CHECKING:
    from workflow_engine.models import WorkflowInstance


class FulfilOrderTests(WorkflowTestMixin, TestCase):
    """The ways an order can take, each from the start to its end."""

    def setUp(self) -> None:
        self.pan = Product.objects.create(sku="PAN", name="Crêpe pan", received=10, stock=10)
        Price.objects.create(product=self.pan, currency="EUR", amount_minor=45_00)

    def begin(self, quantity: int = 2, number: str = "S-1") -> tuple[Order, WorkflowInstance]:
        """An order of pans, with its workflow run as far as it gets."""
        order = Order.objects.place(
            [(self.pan, quantity, Money(45_00, "EUR"))],
            number=number,
            customer="Zoë",
            email="zoe@example.com",
            currency="EUR",
        )
        instance = start_fulfilment(order)
        self.drain()
        return order, instance

    def pay(self, instance: WorkflowInstance, *, declined: bool = False, **changes: Any) -> None:
        name = "payment_declined" if declined else "payment_succeeded"
        data = {"payment_id": f"pay_{name}", "amount_minor": 90_00, "currency": "EUR"} | changes
        self.signal(instance, name, data, idempotency_key=f"evt_{data['payment_id']}")

    def where(self, order: Order, instance: WorkflowInstance) -> tuple[str, str, str]:
        """The order's status, the instance's, and the step it is at."""
        order.refresh_from_db()
        found = self.reload(instance)
        return order.status, found.status, found.current_step

    def stock(self) -> int:
        return Product.objects.get().stock

    def test_a_paid_order_is_shipped_and_followed_up_five_days_later(self) -> None:
        order, instance = self.begin()
        assert self.where(order, instance) == ("awaiting_payment", "awaiting", "await_payment")
        self.pay(instance)
        assert self.where(order, instance) == ("shipped", "sleeping", "wait_for_delivery")
        assert order.shipment.tracking_number == carrier.book_parcel("S-1", attempt=2)
        self.shift_time(days=4, hours=23)
        assert self.where(order, instance)[0] == "shipped"
        self.shift_time(hours=2)
        assert self.where(order, instance) == ("closed", "completed", "follow_up")
        assert (self.reload(instance).result, self.stock()) == ({"outcome": "fulfilled"}, 8)

    def test_what_is_not_in_stock_ends_the_order_early_and_takes_nothing(self) -> None:
        order, instance = self.begin(quantity=11)
        assert self.where(order, instance) == ("out_of_stock", "completed", "reserve_stock")
        assert self.reload(instance).result == {"outcome": "out of stock", "sku": "PAN"}
        assert (order.note, self.stock()) == ("Not enough of PAN in stock.", 10)

    def test_an_order_over_the_limit_waits_for_a_person_who_approves(self) -> None:
        order, instance = self.begin(quantity=10)
        assert self.where(order, instance) == ("in_review", "awaiting", "review")
        self.signal(instance, "review_decided", {"approved": True}, actor="riley")
        assert self.where(order, instance) == ("awaiting_payment", "awaiting", "await_payment")
        assert (order.reviewed_by, self.reload(instance).context) == ("riley", {"approved_by": "riley"})

    def test_a_rejected_order_gives_its_stock_back(self) -> None:
        order, instance = self.begin(quantity=10)
        self.signal(instance, "review_decided", {"approved": False}, actor="riley")
        assert self.where(order, instance) == ("rejected", "completed", "cancel_order")
        assert (order.note, self.stock()) == ("Rejected by riley.", 10)

    def test_a_decision_that_says_neither_yes_nor_no_leaves_the_order_in_review_and_the_clock_running(self) -> None:
        order, instance = self.begin(quantity=10)
        deadline = self.reload(instance).deadline_at
        self.signal(instance, "review_decided")
        assert self.where(order, instance) == ("in_review", "awaiting", "review")
        assert self.reload(instance).deadline_at == deadline

    def test_an_order_that_nobody_reviews_in_two_days_is_rejected(self) -> None:
        order, instance = self.begin(quantity=10)
        self.shift_time(days=2, minutes=1)
        assert self.where(order, instance) == ("rejected", "completed", "cancel_order")
        assert (order.note, self.stock()) == ("Nobody reviewed it in time.", 10)

    def test_a_late_customer_is_reminded_every_hour_and_given_up_after_three(self) -> None:
        order, instance = self.begin()
        for reminders in (1, 2, 3):
            self.shift_time(hours=1, minutes=1)
            assert self.where(order, instance) == ("awaiting_payment", "awaiting", "await_payment")
            assert order.reminders == reminders
        self.shift_time(hours=1, minutes=1)
        assert self.where(order, instance) == ("unpaid", "completed", "cancel_order")
        assert (order.note, self.stock()) == ("Not paid after 3 reminders.", 10)

    def test_a_payment_signalled_by_hand_is_one_of_the_whole_sum(self) -> None:
        order, instance = self.begin()
        self.signal(instance, "payment_succeeded", actor="riley")
        assert self.where(order, instance)[0] == "shipped"
        assert str(order.payments.get().amount) == "90.00 EUR"

    def test_a_reminded_customer_may_still_pay(self) -> None:
        order, instance = self.begin()
        self.shift_time(hours=3)
        self.pay(instance)
        assert self.where(order, instance)[0] == "shipped"

    def test_a_declined_card_leaves_the_clock_running_and_another_card_may_do(self) -> None:
        order, instance = self.begin()
        deadline = self.reload(instance).deadline_at
        self.shift_time(minutes=30)
        self.pay(instance, declined=True)
        assert self.where(order, instance) == ("awaiting_payment", "awaiting", "await_payment")
        assert (self.reload(instance).deadline_at, self.reload(instance).context) == (deadline, {"declines": 1})
        self.pay(instance)
        assert self.where(order, instance)[0] == "shipped"

    def test_two_declined_cards_are_the_end(self) -> None:
        order, instance = self.begin()
        for payment in ("pay_1", "pay_2"):
            self.pay(instance, declined=True, payment_id=payment)
        assert self.where(order, instance) == ("unpaid", "completed", "cancel_order")
        assert (order.note, self.stock()) == ("The card was declined 2 times.", 10)

    def test_a_payment_that_comes_early_is_kept_until_it_is_awaited(self) -> None:
        order, instance = self.begin(quantity=10)
        self.pay(instance, amount_minor=450_00)
        assert self.where(order, instance)[0] == "in_review"
        self.signal(instance, "review_decided", {"approved": True}, actor="riley")
        assert self.where(order, instance)[0] == "shipped"

    def test_a_payment_of_another_amount_fails_the_workflow_for_a_person_to_look_at(self) -> None:
        order, instance = self.begin()
        self.pay(instance, amount_minor=1)
        assert self.where(order, instance) == ("awaiting_payment", "failed", "await_payment")
        assert "pay_payment_succeeded paid 0.01 EUR, but S-1 costs 90.00 EUR" in str(self.reload(instance).error)

    def test_a_carrier_without_room_is_asked_again(self) -> None:
        order, instance = self.begin(number=one_that_finds_no_room())
        with self.assertLogs("workflow_engine", "WARNING"):
            self.pay(instance)
        assert self.where(order, instance)[0] == "paid"
        assert not Shipment.objects.exists()
        self.shift_time(seconds=5)
        assert self.where(order, instance)[0] == "shipped"

    def test_starting_an_order_again_finds_its_instance(self) -> None:
        order, instance = self.begin()
        assert start_fulfilment(order) == instance
        assert self.stock() == 8

    def test_a_shipped_order_goes_to_no_other_step_than_those_it_declares(self) -> None:
        assert FulfilOrder.steps["await_payment"].goes_to == ("send_reminder", "cancel_order")
        assert len(FulfilOrder.step_keys()) >= 8


def one_that_finds_no_room() -> str:
    for number in range(100):
        try:
            carrier.book_parcel(f"S-{number}", attempt=1)
        except carrier.CarrierBusyError:
            return f"S-{number}"
    raise AssertionError("the carrier has room for everything")
