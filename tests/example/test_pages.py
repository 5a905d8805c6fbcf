from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from example_project.shop.models import Order, OrderStatus
from example_project.shop.workflows import start_fulfilment
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance, WorkflowSignal

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

    from example_project.shop.models import Product

    from .conftest import PlaceOrder

ADDRESS = {"customer": "Zoë", "email": "zoe@example.com"}


def test_a_placed_order_and_its_workflow_are_there_together(client: Client, pan: Product) -> None:
    response = client.post("/?currency=EUR", {**ADDRESS, f"quantity_{pan.pk}": "2"})
    order = Order.objects.get()
    assert response.headers["Location"] == f"/orders/{order.token}/"
    assert (str(order.total), order.number[:2], order.lines.get().quantity) == ("80.00 EUR", "W-", 2)
    instance = WorkflowInstance.objects.for_subject(order).get()
    assert (instance.workflow_name, instance.idempotency_key) == ("fulfil_order", f"order-{order.pk}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantity": "0"}, "Choose at least one thing to order."),
        ({"quantity": "21"}, "Ensure this value is less than or equal to 20."),
        ({"email": "zoe"}, "Enter a valid email address."),
    ],
)
def test_an_order_with_a_mistake_is_not_placed(
    client: Client, pan: Product, change: dict[str, str], message: str
) -> None:
    fields = {**ADDRESS, "quantity": "1"} | change
    fields[f"quantity_{pan.pk}"] = fields.pop("quantity")
    response = client.post("/?currency=EUR", fields)
    assert message in response.content.decode()
    assert not Order.objects.exists()


def test_what_has_no_price_in_a_currency_is_not_for_sale_in_it(client: Client, pan: Product) -> None:
    assert "Crêpe pan" in client.get("/?currency=EUR").content.decode()
    assert "Crêpe pan" not in client.get("/?currency=JPY").content.decode()
    assert "Crêpe pan" in client.get("/?currency=nonsense").content.decode()


def test_the_order_page_says_what_the_order_waits_for(client: Client, pan: Product, place_order: PlaceOrder) -> None:
    order = place_order(pan)
    engine.drive(start_fulfilment(order))
    page = client.get(order.get_absolute_url()).content.decode()
    assert "awaiting payment" in page
    assert "<code>payment_succeeded</code> or <code>payment_declined</code>" in page
    assert "Pay 40.00 EUR" in page


@pytest.mark.django_db
def test_an_order_is_found_by_its_token_only(client: Client) -> None:
    assert client.get("/orders/00000000-0000-0000-0000-000000000000/").status_code == 404


def test_an_order_may_be_paid_with_a_stored_card(client: Client, pan: Product) -> None:
    client.post("/?currency=EUR", {**ADDRESS, "card": "card_4242", f"quantity_{pan.pk}": "1"})
    assert Order.objects.get().card == "card_4242"
    page = client.post("/?currency=EUR", {**ADDRESS, "card": "card_of_somebody", f"quantity_{pan.pk}": "1"})
    assert "card_of_somebody is not one of the available choices" in page.content.decode()


@pytest.mark.usefixtures("outside")
def test_the_simulated_payment_page_lets_the_provider_tell_the_shop(
    client: Client, pan: Product, place_order: PlaceOrder
) -> None:
    order = place_order(pan)
    instance = start_fulfilment(order)
    engine.drive(instance)
    client.post(f"/orders/{order.token}/pay/", {"decline": ""})
    engine.drive(instance)
    client.post(f"/orders/{order.token}/pay/")
    engine.drive(instance)
    order.refresh_from_db()
    payments = list(order.payments.order_by("pk").values_list("status", flat=True))
    assert (order.status, payments) == (OrderStatus.SHIPPED, ["declined", "succeeded"])


def test_a_payment_page_that_nobody_serves_says_what_to_start(
    client: Client, pan: Product, place_order: PlaceOrder, settings: Settings
) -> None:
    settings.SHOP_OUTSIDE_URL = "http://127.0.0.1:1"
    order = place_order(pan)
    order.move_to(OrderStatus.AWAITING_PAYMENT)
    page = client.post(f"/orders/{order.token}/pay/", follow=True)
    assert [str(message) for message in page.context["messages"]] == [
        "127.0.0.1:1 can't be reached. Is `manage.py outside` running, which plays the payment provider?"
    ]


def test_there_is_no_simulated_payment_page_in_a_real_shop(
    client: Client, pan: Product, place_order: PlaceOrder, settings: Settings
) -> None:
    settings.SHOP_DEMO = False
    order = place_order(pan)
    order.move_to(OrderStatus.AWAITING_PAYMENT)
    assert client.post(f"/orders/{order.token}/pay/").status_code == 404


# --- cancelling -------------------------------------------------------------------------------


def cancel(client: Client, order: Order) -> str:
    page = client.post(f"/orders/{order.token}/cancel/", follow=True)
    return " ".join(str(message) for message in page.context["messages"])


@pytest.mark.usefixtures("outside")
def test_a_customer_cancels_an_order_and_gets_the_money_back(
    client: Client, pan: Product, place_order: PlaceOrder
) -> None:
    order = place_order(pan, card="card_4242")
    instance = start_fulfilment(order)
    engine.drive(instance)
    assert "Cancel the order" in client.get(order.get_absolute_url()).content.decode()
    assert cancel(client, order) == "Cancelled. A worker undoes what was done."
    engine.drive(instance)
    page = client.get(order.get_absolute_url()).content.decode()
    assert "Cancelled by the customer." in page
    assert "40.00 EUR succeeded, given back" in page
    assert "called back in time" in page
    assert "Cancel the order" not in page


def test_an_order_that_is_being_cancelled_or_over_can_not_be_cancelled_again(
    client: Client, pan: Product, place_order: PlaceOrder
) -> None:
    order = place_order(pan)
    assert cancel(client, order) == "S-1 can't be cancelled: it is placed."
    instance = start_fulfilment(order)
    engine.drive(instance)
    engine.cancel(instance)
    # The undo asks the provider, which is not there: it is tried again later.
    engine.drive(instance)
    assert cancel(client, order) == "S-1 is being cancelled, or over, already."
    order.move_to(OrderStatus.CLOSED)
    assert cancel(client, order) == "S-1 can't be cancelled: it is closed."


# --- reviews ----------------------------------------------------------------------------------


@pytest.fixture
def in_review(machine: Product, place_order: PlaceOrder) -> Order:
    order = place_order(machine)
    engine.drive(start_fulfilment(order))
    return order


def decide(client: Client, order: Order, decision: str) -> str:
    response = client.post(f"/reviews/{order.pk}/", {"decision": decision}, follow=True)
    return " ".join(str(message) for message in response.context["messages"])


def test_a_stranger_is_sent_to_the_login_and_a_customer_is_refused(
    client: Client, in_review: Order, django_user_model: type[User]
) -> None:
    target = f"/reviews/{in_review.pk}/"
    assert client.get("/reviews/").headers["Location"] == "/admin/login/?next=/reviews/"
    assert client.post(target, {"decision": "approve"}).headers["Location"] == f"/admin/login/?next={target}"
    client.force_login(django_user_model.objects.create_user("customer"))
    assert client.get("/reviews/").status_code == 403
    assert client.post(target, {"decision": "approve"}).status_code == 403
    assert not WorkflowSignal.objects.exists()


def test_staff_see_what_waits_and_until_when(client: Client, in_review: Order, reviewer: User) -> None:
    client.force_login(reviewer)
    page = client.get("/reviews/").content.decode()
    assert "S-1</a> · 700.00 EUR" in page
    assert "Espresso machine" in page


def test_a_decision_is_signalled_in_the_name_of_who_took_it(client: Client, in_review: Order, reviewer: User) -> None:
    client.force_login(reviewer)
    assert decide(client, in_review, "approve") == "S-1: approved."
    signal = WorkflowSignal.objects.get()
    assert (signal.name, signal.data, signal.actor) == ("review_decided", {"approved": True}, "riley")


def test_a_decided_order_is_no_longer_listed_even_before_a_worker_comes(
    client: Client, in_review: Order, reviewer: User
) -> None:
    client.force_login(reviewer)
    decide(client, in_review, "approve")
    assert "Nothing waits for a review." in client.get("/reviews/").content.decode()


def test_a_second_decision_of_another_mind_is_told_so(client: Client, in_review: Order, reviewer: User) -> None:
    client.force_login(reviewer)
    decide(client, in_review, "approve")
    assert decide(client, in_review, "reject") == "S-1 has been decided already."
    assert WorkflowSignal.objects.count() == 1


def test_neither_yes_nor_no_is_no_decision(client: Client, in_review: Order, reviewer: User) -> None:
    client.force_login(reviewer)
    assert decide(client, in_review, "perhaps") == "Choose approve or reject."


def test_an_order_that_is_not_in_review_can_not_be_decided(
    client: Client, pan: Product, place_order: PlaceOrder, reviewer: User
) -> None:
    client.force_login(reviewer)
    assert client.post(f"/reviews/{place_order(pan).pk}/", {"decision": "approve"}).status_code == 404


@pytest.mark.parametrize("path", ["order", "product", "payment", "refund", "shipment"])
def test_the_admin_lists_the_shops_tables(admin_client: Client, in_review: Order, path: str) -> None:
    assert admin_client.get(f"/admin/shop/{path}/").status_code == 200


def test_an_order_is_looked_at_in_the_admin_but_not_changed(admin_client: Client, in_review: Order) -> None:
    assert admin_client.get(f"/admin/shop/order/{in_review.pk}/change/").status_code == 200
    assert admin_client.post(f"/admin/shop/order/{in_review.pk}/change/", {"status": "closed"}).status_code == 403
