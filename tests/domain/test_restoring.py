from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any
from uuid import UUID

import pytest

from workflow_engine.domain.restoring import restore, restore_field


class Currency(Enum):
    EURO = "EUR"
    YEN = "JPY"


class Priority(IntEnum):
    HIGH = 1


@dataclass(frozen=True)
class Line:
    sku: str
    price: Decimal


@dataclass(frozen=True)
class Order:
    number: str
    currency: Currency
    lines: list[Line] = field(default_factory=list)
    placed_at: datetime | None = None
    note: str = "none"


ORDER_ID = UUID("018f0000-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("kind", "stored", "restored"),
    [
        (Decimal, "42.00", Decimal("42.00")),
        (Decimal, 0.1, Decimal("0.1")),
        (datetime, "2026-01-01T12:00:00.000001+00:00", datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC)),
        (date, "2026-01-01", date(2026, 1, 1)),
        (time, "12:30:00", time(12, 30)),
        (timedelta, 90.5, timedelta(seconds=90.5)),
        (UUID, str(ORDER_ID), ORDER_ID),
        (Currency, "EUR", Currency.EURO),
        (Priority, 1, Priority.HIGH),
        (float, 1, 1.0),
        (str, "x", "x"),
        (bool, True, True),
        (Any, {"a": ["b"]}, {"a": ["b"]}),
        (Line, {"sku": "A", "price": "1.50"}, Line("A", Decimal("1.50"))),
        (Decimal | None, "1", Decimal(1)),
        (Decimal | None, None, None),
        (Decimal, None, None),
        (datetime | str, "2026-01-01", datetime(2026, 1, 1)),  # noqa: DTZ001 - as it was stored
        (datetime | str, "tomorrow", "tomorrow"),
        (Line | None, {"sku": "A", "price": "1"}, Line("A", Decimal(1))),
        (Annotated[Decimal, "gross"], "1", Decimal(1)),
        (list[Decimal], ["1", "2"], [Decimal(1), Decimal(2)]),
        (Sequence[date], ["2026-01-01"], [date(2026, 1, 1)]),
        (list, ["1"], ["1"]),
        (tuple, [1, 2], (1, 2)),
        (tuple[Decimal, ...], ["1", "2"], (Decimal(1), Decimal(2))),
        (tuple[str, Decimal], ["a", "2"], ("a", Decimal(2))),
        (dict[str, Decimal], {"a": "1"}, {"a": Decimal(1)}),
        (Mapping[str, Line], {"a": {"sku": "A", "price": "1"}}, {"a": Line("A", Decimal(1))}),
        (list[Decimal | None], ["1", None], [Decimal(1), None]),
    ],
    ids=repr,
)
def test_a_stored_value_gets_its_declared_type_back(kind: Any, stored: object, restored: object) -> None:
    found = restore(kind, stored)
    assert (found, type(found)) == (restored, type(restored))


def test_what_was_not_stored_gets_its_default_or_none() -> None:
    order = restore(Order, {"currency": "JPY", "unknown": 1})
    assert asdict(order) == {
        "number": None,
        "currency": Currency.YEN,
        "lines": [],
        "placed_at": None,
        "note": "none",
    }


def test_a_field_that_the_dataclass_does_not_have_stays_as_it_is() -> None:
    assert restore_field(Order, "coupon", {"code": "X"}) == {"code": "X"}


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"currency": "XXX"}, "Order.currency: the stored str is no Currency"),
        ({"lines": [{"sku": "A", "price": "cheap"}]}, "Order.lines: Line.price: the stored str is no Decimal"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_path(stored: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        restore(Order, stored)


def test_restored_values_are_copies() -> None:
    stored = json.loads('{"a": [{"b": []}]}')
    restore(Any, stored)["a"][0]["b"].append(1)
    restore(dict[str, Any], stored)["a"][0]["b"].append(1)
    assert stored == {"a": [{"b": []}]}
