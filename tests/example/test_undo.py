"""Orders that are undone: the money goes back once, the parcel comes back, and the stock is there again."""

from __future__ import annotations

import pytest

from example_project.outside.luck import Mood
from example_project.shop import calls, workflows
from example_project.shop.models import Refund
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance

from .fulfilment import FulfilmentTestCase

CARD = "card_4242"
REASON = "Cancelled by the customer."


class CancelTests(FulfilmentTestCase):
    def cancel(self, instance: WorkflowInstance) -> None:
        engine.cancel(instance, reason=REASON, actor="zoe@example.com")
        self.drain()

    def refund(self) -> str:
        """The provider's name for the only one."""
        return Refund.objects.get().provider_id

    def test_a_shipped_order_is_called_back_paid_back_and_back_on_the_shelf(self) -> None:
        order, instance = self.begin(card=CARD)
        self.cancel(instance)
        assert self.where(order, instance) == ("cancelled", "cancelled", "wait_for_delivery")
        assert (order.note, self.stock()) == (REASON, 10)
        assert self.charges() == [("S-1", 90_00, self.refund())]
        assert self.parcels() == [("S-1", order.shipment.tracking_number, "recalled")]
        assert order.shipment.status == "recalled"

    def test_units_that_are_on_their_way_back_are_not_on_the_shelf_yet(self) -> None:
        self.outside.luck.sure = {("on the road", "S-1")}
        order, instance = self.begin(card=CARD)
        self.cancel(instance)
        assert (self.where(order, instance)[1], order.shipment.status) == ("cancelled", "returning")
        assert (self.charges(), self.stock()) == ([("S-1", 90_00, self.refund())], 8)

    def test_a_payment_from_the_payment_page_is_given_back_too(self) -> None:
        order, instance = self.begin()
        self.shift_time(hours=2)
        self.pay(instance)
        self.cancel(instance)
        # Each round of the reminder loop is undone; the later ones find that it was given back.
        assert self.where(order, instance)[:2] == ("cancelled", "cancelled")
        assert (self.charges(), order.reminders) == ([("S-1", 90_00, self.refund())], 1)

    def test_an_undo_whose_answers_are_lost_refunds_once(self) -> None:
        self.plan("refund", Mood.LOST, Mood.LOST)
        self.plan("recall", Mood.LOST, Mood.DOWN)
        order, instance = self.begin(card=CARD)
        with self.assertLogs("workflow_engine", "WARNING"):
            self.cancel(instance)
        for _ in range(2):
            self.let_retries_come_due()
        assert self.where(order, instance)[:2] == ("cancelled", "cancelled")
        assert (self.charges(), self.stock()) == ([("S-1", 90_00, self.refund())], 10)
        assert (self.counts()["refund asked for"], self.counts()["refund repeated"]) == (3, 2)
        assert self.failures(instance) == [
            ("ship", "NoAnswerError"),
            ("ship", "UnavailableError"),
            ("charge", "NoAnswerError"),
            ("charge", "NoAnswerError"),
        ]

    def test_money_that_the_shop_has_not_heard_of_is_given_back_when_the_provider_says_so(self) -> None:
        order, instance = self.begin()
        calls.post("/page", {"reference": "S-1", "amount_minor": 90_00, "currency": "EUR"}, key="page")
        self.cancel(instance)
        assert self.where(order, instance) == ("cancelled", "cancelled", "await_payment")
        assert self.charges() == [("S-1", 90_00, self.refund())]
        assert order.payments.get().refund.provider_id == self.refund()

    def test_a_rejected_order_that_was_paid_early_is_paid_back(self) -> None:
        order, instance = self.begin(quantity=10)
        self.pay(instance, amount_minor=450_00)
        self.plan("refund", Mood.LOST)
        with self.assertLogs("workflow_engine", "WARNING"):
            self.signal(instance, "review_decided", {"approved": False}, actor="riley")
        self.let_retries_come_due()
        assert self.where(order, instance) == ("rejected", "completed", "cancel_order")
        assert (order.note, self.stock()) == ("Rejected by riley.", 10)
        assert self.charges() == [("S-1", 450_00, self.refund())]

    def test_an_order_that_nobody_paid_is_cancelled_without_a_refund(self) -> None:
        order, instance = self.begin()
        self.cancel(instance)
        assert self.where(order, instance)[:2] == ("cancelled", "cancelled")
        assert (self.counts(), self.stock(), Refund.objects.exists()) == ({}, 10, False)

    def test_a_charge_of_unknown_outcome_is_asked_about_and_given_back(self) -> None:
        self.plan("charge", Mood.LOST)
        order, instance = self.begin(card=CARD)
        self.cancel(instance)
        assert self.where(order, instance) == ("cancelled", "cancelled", "charge")
        assert self.charges() == [("S-1", 90_00, self.refund())]
        assert self.counts()["charge asked for"] == 1

    def test_a_provider_that_never_answers_is_asked_about_when_the_attempts_are_spent(self) -> None:
        self.plan("charge", *[Mood.LOST] * 10)
        order, instance = self.begin(card=CARD)
        with self.assertLogs("workflow_engine", "ERROR"):
            for _ in range(9):
                self.shift_time(minutes=11)
        assert self.where(order, instance) == ("cancelled", "compensated", "charge")
        assert (order.note, self.stock()) == ("no answer to POST /charges", 10)
        assert self.charges() == [("S-1", 90_00, self.refund())]

    def test_a_charge_that_was_never_made_needs_no_refund(self) -> None:
        self.outside.luck.down = range(1, 100)
        order, instance = self.begin(card=CARD)
        self.cancel(instance)
        assert (self.where(order, instance)[1], Refund.objects.exists()) == ("cancelled", False)

    def test_money_that_came_some_other_way_is_left_to_a_person(self) -> None:
        order, instance = self.begin()
        self.signal(instance, "payment_succeeded", actor="riley")
        with self.assertLogs("workflow_engine", "ERROR"):
            self.cancel(instance)
        # The provider knows nothing of it. All else is undone, and the instance says that it needs a look.
        assert self.where(order, instance)[:2] == ("cancelled", "failed")
        assert self.failures(instance) == [("await_payment", "RefusedError")]
        assert (self.stock(), Refund.objects.exists()) == (10, False)

    def test_a_cancellation_reaches_a_worker_that_waits_for_a_label(self) -> None:
        self.outside.luck.sure = {("slow label", "S-1")}
        pauses = []

        def somebody_cancels(seconds: float) -> None:
            pauses.append(seconds)
            instance = WorkflowInstance.objects.get()
            engine.cancel(instance, reason=REASON)
            # Another worker, say, finds the request, and that an activity is running.
            assert engine.advance(instance).answer == "advanced"

        with pytest.MonkeyPatch.context() as patch, self.assertLogs("workflow_engine", "WARNING"):
            patch.setattr("example_project.shop.workflows.time.sleep", somebody_cancels)
            order, instance = self.begin(card=CARD)
        assert pauses == [workflows.LABEL_PAUSE]
        assert self.where(order, instance) == ("cancelled", "cancelled", "ship")
        assert self.parcels() == [("S-1", order.shipment.tracking_number, "recalled")]
        assert (self.charges(), self.stock()) == ([("S-1", 90_00, self.refund())], 10)
