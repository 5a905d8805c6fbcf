from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from workflow_engine.domain.context import Context
from workflow_engine.exceptions import FinalError, SubjectMissingError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDER_ID = UUID("018f0000-0000-7000-8000-000000000001")


@dataclass
class OrderData:
    amount: Decimal
    tags: list[str] = field(default_factory=list)
    paid_at: datetime | None = None


@dataclass
class Subjects:
    loaded: int = 0

    def __call__(self) -> str:
        self.loaded += 1
        return f"order {self.loaded}"


class FiveSeconds:
    beats = 0

    def heartbeat(self) -> None:
        self.beats += 1

    def remaining(self) -> timedelta:
        return timedelta(seconds=5)


def context(data: Mapping[str, Any] | None = None, **options: Any) -> Context[Any]:
    given: dict[str, Any] = {
        "data": {"amount": "42.00", "tags": ["new"]} if data is None else data,
        "workflow": "order",
        "instance_id": ORDER_ID,
        "step": "charge",
        "visit": 3,
        "attempt": 2,
        "idempotency_key": "k" * 64,
        "now": NOON,
    }
    return Context(**{**given, **options})


def test_it_is_a_mapping_over_the_json_form() -> None:
    ctx = context()
    assert ctx == {"amount": "42.00", "tags": ["new"]}
    assert (ctx["amount"], ctx.get("paid_at"), "tags" in ctx, len(ctx), list(ctx)) == (
        "42.00",
        None,
        True,
        2,
        ["amount", "tags"],
    )
    assert ctx.data == ctx


def test_it_tells_the_circumstances_of_the_attempt() -> None:
    ctx = context(subject_ref=("shop.order", "42"), tenant="acme", deadline=NOON, forward_idempotency_key="f" * 64)
    assert (ctx.workflow, ctx.instance_id, ctx.step, ctx.visit, ctx.attempt) == ("order", ORDER_ID, "charge", 3, 2)
    assert (ctx.idempotency_key, ctx.forward_idempotency_key) == ("k" * 64, "f" * 64)
    assert (ctx.subject_ref, ctx.tenant, ctx.now, ctx.deadline) == (("shop.order", "42"), "acme", NOON, NOON)


def test_a_context_class_restores_the_types() -> None:
    ctx: Context[OrderData] = context({"amount": "42.00", "coupon": "X"}, context_class=OrderData)
    assert ctx.data == OrderData(amount=Decimal("42.00"))
    assert dict(ctx) == {"amount": Decimal("42.00"), "coupon": "X"}


def test_the_input_has_the_same_types_as_the_context() -> None:
    ctx = context({"amount": "1"}, input={"amount": "2"}, context_class=OrderData)
    assert ctx.input == {"amount": Decimal(2)}


def test_a_value_of_a_wrong_type_fails_whoever_reads_it_and_nobody_else() -> None:
    ctx = context({"amount": "much", "tags": []}, context_class=OrderData)
    assert ctx["tags"] == []
    with pytest.raises(ValueError, match=r"^OrderData\.amount: the stored str is no Decimal$"):
        _ = ctx["amount"]
    with pytest.raises(ValueError, match=r"^OrderData\.amount: the stored str is no Decimal$"):
        _ = ctx.data


@pytest.mark.parametrize("context_class", [None, OrderData])
def test_changing_a_value_changes_nothing(context_class: type | None) -> None:
    stored = {"amount": "1", "tags": ["new"], "lines": [{"sku": "A"}]}
    ctx = context(stored, input=stored, results={"charge": {"ids": []}}, context_class=context_class)
    ctx["tags"].append("old")
    ctx["lines"][0]["sku"] = "B"
    ctx.input["lines"].clear()
    ctx.results["charge"]["ids"].append(1)
    assert ctx["tags"] == ctx.input["tags"] == ["new"]
    assert ctx["lines"] == ctx.input["lines"] == [{"sku": "A"}]
    assert ctx.results == {"charge": {"ids": []}}
    assert stored == {"amount": "1", "tags": ["new"], "lines": [{"sku": "A"}]}


def test_nothing_can_be_assigned() -> None:
    ctx: Any = context()
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'attempt'$"):
        ctx.attempt = 1
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'data'$"):
        ctx.data = {}
    with pytest.raises(TypeError, match=r"^'Context' object does not support item assignment$"):
        ctx["amount"] = 1


def test_the_subject_is_fetched_once_and_only_when_asked_for() -> None:
    subjects = Subjects()
    ctx = context(load_subject=subjects)
    assert subjects.loaded == 0
    assert (ctx.subject, ctx.subject, subjects.loaded) == ("order 1", "order 1", 1)


def test_a_missing_subject_is_told_each_time() -> None:
    def missing() -> None:
        raise SubjectMissingError("shop.order", "42")

    ctx = context(load_subject=missing)
    for _ in range(2):
        with pytest.raises(SubjectMissingError):
            _ = ctx.subject


def test_an_activity_renews_its_lease() -> None:
    lease = FiveSeconds()
    ctx = context(lease=lease)
    ctx.heartbeat()
    assert (lease.beats, ctx.lease_remaining()) == (1, timedelta(seconds=5))


@pytest.mark.parametrize("method", ["heartbeat", "lease_remaining"])
def test_a_plain_step_has_no_lease(method: str) -> None:
    with pytest.raises(FinalError) as refused:
        getattr(context(), method)()
    assert str(refused.value) == (
        f"Step 'charge' called ctx.{method}(), but only an activity has a lease. Declare it with @activity, or leave"
        " the call out: a @step runs inside one transaction."
    )


def test_its_repr_keeps_the_context_secret_and_that_of_a_part_shows_it() -> None:
    assert repr(context(input={"amount": "1"}).input) == "{'amount': '1'}"
    assert repr(context()) == "<Context of order.charge visit 3 attempt 2>"
