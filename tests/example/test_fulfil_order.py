from __future__ import annotations

from example_project.shop.workflows import FulfilOrder, start_fulfilment

from .fulfilment import FulfilmentTestCase


class FulfilOrderTests(FulfilmentTestCase):
    """The ways an order without a stored card can take, each from the start to its end."""

    def test_a_paid_order_is_shipped_and_followed_up_five_days_later(self) -> None:
        order, instance = self.begin()
        assert self.where(order, instance) == ("awaiting_payment", "awaiting", "await_payment")
        self.pay(instance)
        assert self.where(order, instance) == ("shipped", "sleeping", "wait_for_delivery")
        assert self.parcels() == [("S-1", order.shipment.tracking_number, "booked")]
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

    def test_a_payment_of_another_amount_is_given_back_and_the_order_undone(self) -> None:
        order, instance = self.begin()
        with self.assertLogs("workflow_engine", "ERROR"):
            self.pay(instance, amount_minor=1)
        payment = order.payments.get()
        assert self.where(order, instance) == ("cancelled", "compensated", "book_payment")
        assert order.note == f"{payment.provider_id} paid 0.01 EUR, but S-1 costs 90.00 EUR"
        assert (self.charges(), self.stock()) == ([("S-1", 1, payment.refund.provider_id)], 10)

    def test_starting_an_order_again_finds_its_instance(self) -> None:
        order, instance = self.begin()
        assert start_fulfilment(order) == instance
        assert self.stock() == 8

    def test_a_shipped_order_goes_to_no_other_step_than_those_it_declares(self) -> None:
        assert FulfilOrder.steps["await_payment"].goes_to == ("send_reminder", "return_payments")
        assert len(FulfilOrder.step_keys()) >= 8
