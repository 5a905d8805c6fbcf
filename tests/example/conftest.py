from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth import get_user_model

from example_project.outside.luck import Luck
from example_project.outside.server import Server
from example_project.shop.models import Order, Price, Product
from example_project.shop.money import Money

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

    PlaceOrder = Callable[..., Order]


@pytest.fixture(autouse=True)
def shop_urls(settings: Settings) -> None:
    settings.ROOT_URLCONF = "example_project.urls"
    settings.ALLOWED_HOSTS = ["testserver", "localhost"]


@pytest.fixture
def outside(tmp_path: Path, settings: Settings) -> Iterator[Server]:
    """The payment provider and the carrier on a free port, and the shop told of it. Nothing goes wrong by itself."""
    with Server(str(tmp_path / "outside.sqlite3"), Luck()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        settings.SHOP_OUTSIDE_URL = server.url
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def pan(db: None) -> Product:
    product = Product.objects.create(sku="PAN", name="Crêpe pan", received=10, stock=10)
    Price.objects.create(product=product, currency="EUR", amount_minor=40_00)
    return product


@pytest.fixture
def machine(db: None) -> Product:
    """Dear enough for one of it to be reviewed."""
    product = Product.objects.create(sku="MACHINE", name="Espresso machine", received=5, stock=5)
    Price.objects.create(product=product, currency="EUR", amount_minor=700_00)
    return product


@pytest.fixture
def place_order(db: None) -> PlaceOrder:
    def place(product: Product, quantity: int = 1, number: str = "S-1", **fields: str) -> Order:
        price = Money(product.prices.get(currency="EUR").amount_minor, "EUR")
        fields = {"customer": "Zoë", "email": "zoe@example.com", "currency": "EUR"} | fields
        return Order.objects.place([(product, quantity, price)], number=number, **fields)

    return place


@pytest.fixture
def reviewer(db: None) -> User:
    return get_user_model().objects.create_user("riley", password="secret", is_staff=True)
