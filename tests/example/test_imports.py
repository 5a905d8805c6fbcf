from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from example_project.shop.data import make_orders
from example_project.shop.imports import load_orders, load_products
from example_project.shop.models import Order, Product
from example_project.shop.money import Money
from example_project.shop.risk import needs_review

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "order,placed_on,customer,email,currency,sku,quantity,unit_price\n"
GOOD = "S-1,2025-03-01,Zoë Lefèvre,zoe@example.com,EUR,PAN,2,40.00\n"

pytestmark = pytest.mark.django_db


def orders_file(folder: Path, rows: str) -> Path:
    path = folder / "orders.csv"
    path.write_text(HEADER + rows, encoding="utf-8")
    return path


def test_an_order_with_two_lines_costs_their_sum(tmp_path: Path, pan: Product, machine: Product) -> None:
    rows = GOOD + "S-1,2025-03-01,Zoë Lefèvre,zoe@example.com,EUR,MACHINE,1,700.00\n"
    report = load_orders(orders_file(tmp_path, rows))
    order = Order.objects.get()
    assert (report.placed, report.problems) == ([order], [])
    assert (order.customer, order.total, order.lines.count()) == ("Zoë Lefèvre", Money(780_00, "EUR"), 2)


def test_stray_blanks_small_letters_and_a_decimal_comma_are_understood(tmp_path: Path, pan: Product) -> None:
    row = 'S-1,2025-03-01,  Zoë  ,zoe@example.com, eur,PAN , 2,"40,00"\n'
    assert load_orders(orders_file(tmp_path, row)).problems == []
    assert str(Order.objects.get().total) == "80.00 EUR"


def test_a_stored_card_is_read_where_the_file_has_that_column(tmp_path: Path, pan: Product) -> None:
    path = tmp_path / "orders.csv"
    rows = [GOOD, GOOD.replace("S-1", "S-2"), GOOD.replace("S-1", "S-3")]
    cards = ["card_4242", "", "4242 4242"]
    lines = [row.replace("\n", f",{card}\n") for row, card in zip(rows, cards, strict=True)]
    path.write_text(HEADER.replace("\n", ",card\n") + "".join(lines), encoding="utf-8")
    report = load_orders(path)
    assert [order.card for order in report.placed] == ["card_4242", ""]
    assert [str(problem) for problem in report.problems] == [
        "line 4, order S-3: '4242 4242' is not a stored card; the order is left out"
    ]


def test_a_product_listed_twice_is_reported_and_counts_once(tmp_path: Path, pan: Product) -> None:
    report = load_orders(orders_file(tmp_path, GOOD + GOOD))
    assert [str(problem) for problem in report.problems] == [
        "line 3, order S-1: PAN is listed twice; this line is left out"
    ]
    assert Order.objects.get().total == Money(80_00, "EUR")


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        (",2,", ",two,", "'two' is not a quantity"),
        (",2,", ",0,", "'0' is not a quantity"),
        (",2,", ",-2,", "'-2' is not a quantity"),
        (",40.00", ",forty", "'forty' is not an amount in EUR"),
        (",40.00", ",0.00", "0.00 EUR is not a price"),
        (",40.00", "", "'' is not an amount in EUR"),
        (",EUR,", ",DOGE,", "'DOGE' is not a currency we sell in"),
        (",PAN,", ",POT,", "there is no product 'POT'"),
        ("2025-03-01", "1.3.2025", "'1.3.2025' is not a date"),
    ],
)
def test_a_row_that_is_wrong_is_reported_and_the_other_orders_are_placed(
    tmp_path: Path, pan: Product, good: str, bad: str, problem: str
) -> None:
    rows = GOOD.replace(good, bad) + GOOD.replace("S-1", "S-2")
    report = load_orders(orders_file(tmp_path, rows))
    assert [str(found) for found in report.problems] == [f"line 2, order S-1: {problem}; the order is left out"]
    assert [order.number for order in report.placed] == ["S-2"]


def test_an_order_with_one_wrong_row_is_left_out_whole(tmp_path: Path, pan: Product) -> None:
    load_orders(orders_file(tmp_path, GOOD + GOOD.replace("PAN", "POT")))
    assert not Order.objects.exists()


def test_a_customer_with_no_mail_address_is_reported(tmp_path: Path, pan: Product) -> None:
    report = load_orders(orders_file(tmp_path, GOOD.replace("zoe@example.com", "zoe")))
    assert [str(problem) for problem in report.problems] == [
        "line 2, order S-1: 'zoe' is not an e-mail address; the order is left out"
    ]


def test_loading_a_file_again_places_nothing_twice(tmp_path: Path, pan: Product) -> None:
    path = orders_file(tmp_path, GOOD)
    load_orders(path)
    report = load_orders(path)
    assert (report.placed, report.known, Order.objects.count()) == ([], 1, 1)


def test_the_files_of_the_demo_are_what_their_script_writes() -> None:
    files = make_orders.files()
    assert {name: (make_orders.HERE / name).read_text(encoding="utf-8") for name in files} == files


def test_the_files_of_the_demo_have_the_mess_that_the_demo_speaks_of() -> None:
    assert load_products(make_orders.HERE / "products.csv") == 13
    report = load_orders(make_orders.HERE / "orders.csv")
    assert len(report.placed) == 199
    assert [str(problem) for problem in report.problems] == [
        "line 59, order S-1027: 'two' is not a quantity; the order is left out",
        "line 122, order S-1060: KIT-11 is listed twice; this line is left out",
    ]
    assert {order.currency for order in report.placed} == {"EUR", "GBP", "CHF", "SEK", "JPY"}
    assert sum(needs_review(order.total) for order in report.placed) >= 10
    assert Order.objects.filter(lines__product__stock=0).count() >= 3
    assert 70 <= sum(bool(order.card) for order in report.placed) <= 110
    assert sum("declined" in order.card for order in report.placed) >= 2
    assert any(not order.customer.isascii() for order in report.placed)
