from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client

from example_project.shop.models import Payment
from example_project.shop.webhooks import PaymentEvent, sign
from example_project.shop.workflows import start_fulfilment
from workflow_engine.models import WorkflowSignal

if TYPE_CHECKING:
    from example_project.shop.models import Order, Product

    from .conftest import PlaceOrder

EVENT = PaymentEvent(
    id="evt_1", kind="payment_succeeded", order="S-1", payment_id="pay_1", amount_minor=4000, currency="EUR"
)


@pytest.fixture
def order(pan: Product, place_order: PlaceOrder) -> Order:
    return place_order(pan)


def post(event: PaymentEvent = EVENT, *, secret: str = settings.SHOP_WEBHOOK_SECRET, age: int = 0) -> tuple[int, str]:
    body = event.to_body()
    return post_raw(body, sign(body, secret=secret, timestamp=int(time.time()) - age))


def post_raw(body: bytes, signature: str | None) -> tuple[int, str]:
    headers: dict[str, Any] = {} if signature is None else {"Shop-Signature": signature}
    # A provider has no CSRF token, and must not need one.
    client = Client(enforce_csrf_checks=True)
    response = client.post("/webhooks/payments/", body, content_type="application/json", headers=headers)
    return response.status_code, response.content.decode()


def stored() -> list[tuple[str, Any, str, str | None]]:
    return list(WorkflowSignal.objects.values_list("name", "data", "actor", "idempotency_key"))


def test_a_signed_event_becomes_a_signal_with_the_events_id_as_key(order: Order) -> None:
    start_fulfilment(order)
    assert post() == (200, "Thank you.")
    data = {"payment_id": "pay_1", "amount_minor": 4000, "currency": "EUR"}
    assert stored() == [("payment_succeeded", data, "payment provider", "evt_1")]


def test_an_event_that_comes_twice_is_one_signal(order: Order) -> None:
    start_fulfilment(order)
    assert [post(), post()] == [(200, "Thank you.")] * 2
    assert len(stored()) == 1


def test_the_same_event_with_other_content_is_a_conflict(order: Order) -> None:
    start_fulfilment(order)
    post()
    answer = post(replace(EVENT, amount_minor=1))
    assert answer == (409, "An event with this id and other content came before.")


@pytest.mark.parametrize(
    ("body", "signature", "answer"),
    [
        (b"{}", None, "The signature is missing or malformed."),
        (b"{}", "t=1,v1=short", "The signature is missing or malformed."),
        (b"{}", f"t=1,v1={'0' * 64}", "The signature does not fit the body."),
    ],
)
@pytest.mark.django_db
def test_an_unsigned_event_is_refused(body: bytes, signature: str | None, answer: str) -> None:
    assert post_raw(body, signature) == (400, answer)
    assert stored() == []


def test_an_event_signed_with_another_secret_or_long_ago_is_refused(order: Order) -> None:
    start_fulfilment(order)
    assert post(secret="guessed") == (400, "The signature does not fit the body.")
    assert post(age=301) == (400, "The signature is too old, or from the future.")
    assert stored() == []


@pytest.mark.django_db
def test_a_signed_body_that_is_no_event_is_refused() -> None:
    body = b"[]"
    signature = sign(body, secret=settings.SHOP_WEBHOOK_SECRET, timestamp=int(time.time()))
    assert post_raw(body, signature) == (400, "The body is not a payment event.")


@pytest.mark.django_db
def test_an_order_that_does_not_exist_is_not_found() -> None:
    assert post() == (404, "There is no such order.")


def test_a_kind_of_event_that_nobody_waits_for_is_received_and_dropped(order: Order) -> None:
    start_fulfilment(order)
    assert post(replace(EVENT, kind="payout_created")) == (200, "Not a kind of event we act on.")
    assert stored() == []


def test_an_event_for_an_order_whose_workflow_does_not_run_is_to_be_sent_again(order: Order) -> None:
    assert post() == (503, "The order's workflow is not running; send this again later.")
    start_fulfilment(order)
    assert post() == (200, "Thank you.")


def test_an_event_that_was_acted_on_is_known_for_ever(order: Order) -> None:
    Payment.objects.create(
        order=order,
        provider_id="pay_1",
        status="succeeded",
        amount_minor=4000,
        currency="EUR",
        received_at=order.placed_at,
    )
    assert post() == (200, "Known, and long since acted on.")


@pytest.mark.django_db
def test_only_posts_are_taken() -> None:
    assert Client().get("/webhooks/payments/").status_code == 405
