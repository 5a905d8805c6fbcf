"""Sets the stage: an empty shop, the files loaded, and a login to look around with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import transaction

from example_project.shop.imports import Report, load_orders, load_products
from example_project.shop.models import Order, Payment, Product, Refund, Shipment
from example_project.shop.workflows import FulfilOrder
from workflow_engine.models import WorkflowInstance

if TYPE_CHECKING:
    from django.contrib.auth.models import User

DATA = Path(__file__).resolve().parent.parent / "data"
LOGIN = "demo"
PASSWORD = "demo"  # noqa: S105 - it opens a database of invented orders


@transaction.atomic
def clear() -> int:
    """Remove everything an earlier demo left, and what was ordered since. Returns how many orders that were."""
    orders = Order.objects.count()
    WorkflowInstance.objects.filter(workflow_name=FulfilOrder.name).delete()
    for model in (Refund, Payment, Shipment, Order, Product):
        model._default_manager.all().delete()
    return orders


def load(count: int | None) -> tuple[int, Report]:
    """Returns the number of products, and what became of the orders."""
    return load_products(DATA / "products.csv"), load_orders(DATA / "orders.csv", limit=count)


def create_login() -> User:
    """A superuser whose password everybody knows."""
    user, created = get_user_model().objects.get_or_create(
        username=LOGIN, defaults={"is_staff": True, "is_superuser": True, "email": "demo@example.com"}
    )
    if created:
        user.set_password(PASSWORD)
        user.save()
    return user
