"""What can happen to a call to the payment provider and the carrier, and what the order's workflow makes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from example_project.outside.luck import Mood
from example_project.shop.models import Payment
from example_project.shop.workflows import LEASE
from workflow_engine.failpoints import installed

from .fulfilment import FulfilmentTestCase

CARD = "card_4242"
SHIPPED = ("shipped", "sleeping", "wait_for_delivery")


class PowerFailureError(BaseException):
    """Ends a worker as a kill would: no code of the engine's or ours catches it."""


class ChargeTests(FulfilmentTestCase):
    def test_an_order_with_a_stored_card_is_charged_booked_and_shipped(self) -> None:
        order, instance = self.begin(card=CARD)
        assert self.where(order, instance) == SHIPPED
        payment = order.payments.get()
        assert (payment.status, str(payment.amount)) == ("succeeded", "90.00 EUR")
        assert self.charges() == [("S-1", 90_00, None)]
        assert self.counts() == {"charge asked for": 1, "parcel asked for": 1}

    def test_a_lost_answer_is_asked_for_again_under_the_same_key_so_it_is_one_charge(self) -> None:
        self.plan("charge", Mood.LOST, Mood.LOST)
        with self.assertLogs("workflow_engine", "WARNING"):
            order, instance = self.begin(card=CARD)
        assert self.where(order, instance) == ("charging", "in_progress", "charge")
        assert self.charges() == [("S-1", 90_00, None)]
        self.let_retries_come_due()
        assert self.where(order, instance) == SHIPPED
        assert (self.charges(), Payment.objects.count()) == ([("S-1", 90_00, None)], 1)
        assert self.failures(instance) == [("charge", "NoAnswerError")] * 2
        assert self.counts()["charge repeated"] == 2

    def test_a_provider_that_is_down_is_asked_later(self) -> None:
        self.outside.luck.down = range(1, 3)
        order, instance = self.begin(card=CARD)
        assert (self.where(order, instance)[0], self.charges()) == ("charging", [])
        self.let_retries_come_due()
        assert self.where(order, instance) == SHIPPED
        assert self.failures(instance) == [("charge", "Retry")] * 2
        assert self.counts()["charge asked for"] == 3

    def test_a_declined_card_ends_the_order_and_gives_the_stock_back(self) -> None:
        with self.assertLogs("workflow_engine", "ERROR"):
            order, instance = self.begin(card="card_declined_1")
        assert self.where(order, instance) == ("cancelled", "compensated", "charge")
        assert (order.note, self.stock()) == ("The card for S-1 was declined.", 10)
        # A returned Fail says that nothing was done, so the provider was not asked whether there is something to undo.
        assert self.counts() == {"charge asked for": 1}

    def test_a_worker_that_dies_between_the_charge_and_its_record_has_charged_once(self) -> None:
        with pytest.raises(PowerFailureError), installed(dying_at("activity.after")):
            self.begin(card=CARD)
        assert (self.charges(), Payment.objects.count()) == ([("S-1", 90_00, None)], 0)
        with self.assertLogs("workflow_engine", "WARNING"):
            self.shift_time(seconds=LEASE)
        self.let_retries_come_due()
        assert (self.charges(), Payment.objects.count()) == ([("S-1", 90_00, None)], 1)
        assert self.counts()["charge repeated"] == 1


class ShipTests(FulfilmentTestCase):
    def test_a_label_that_takes_long_is_waited_for(self) -> None:
        self.outside.luck.sure = {("slow label", "S-1")}
        order, instance = self.begin(card=CARD)
        assert self.where(order, instance) == SHIPPED
        assert self.parcels() == [("S-1", order.shipment.tracking_number, "booked")]

    def test_a_parcel_whose_booking_was_not_heard_of_is_booked_once(self) -> None:
        self.plan("parcel", Mood.LOST, Mood.DOWN)
        with self.assertLogs("workflow_engine", "WARNING"):
            order, instance = self.begin(card=CARD)
        assert self.where(order, instance) == ("paid", "in_progress", "ship")
        self.let_retries_come_due()
        assert self.where(order, instance) == SHIPPED
        assert self.failures(instance) == [("ship", "NoAnswerError"), ("ship", "Retry")]
        assert self.parcels() == [("S-1", order.shipment.tracking_number, "booked")]

    def test_what_can_not_be_delivered_is_undone_and_paid_back(self) -> None:
        self.outside.luck.sure = {("undeliverable", "S-1")}
        with self.assertLogs("workflow_engine", "ERROR"):
            order, instance = self.begin(card=CARD)
        assert self.where(order, instance) == ("cancelled", "compensated", "ship")
        assert (order.note, self.stock()) == ("The carrier does not deliver S-1.", 10)
        assert self.charges() == [("S-1", 90_00, order.payments.get().refund.provider_id)]


def dying_at(place: str) -> Callable[[str], None]:
    """For `installed`: ends the worker when it gets to this place."""

    def reached(name: str) -> None:
        if name == place:
            raise PowerFailureError

    return reached
