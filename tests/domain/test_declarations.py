from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import wraps
from typing import Any
from uuid import UUID

import pytest

from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations import (
    Activity,
    ActivityOptions,
    BoundStep,
    CompensationOptions,
    Declaration,
    Step,
    activity,
    step,
)
from workflow_engine.domain.outcomes import Await, Fail, Goto, Outcome, Retry
from workflow_engine.domain.received import Signal
from workflow_engine.domain.registry import registry
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.workflows import Workflow
from workflow_engine.exceptions import HandlerMissingError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIVE_TIMES = RetryPolicy(max_attempts=5)
NEVER_AGAIN = RetryPolicy(max_attempts=1)
PAID = Signal(id=1, name="paid", data={"id": "pay_1"}, actor="stripe", received_at=NOON)
REFUSED = Signal(id=2, name="refused", data={}, actor="stripe", received_at=NOON)


def context(**data: Any) -> Context[Any]:
    return Context(
        data=data,
        workflow="order",
        instance_id=UUID(int=0),
        step="charge",
        visit=1,
        attempt=1,
        idempotency_key="key",
        now=NOON,
    )


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        registry._classes.clear()
        yield


def define(**steps: Any) -> type[Workflow[Any]]:
    """A workflow of these class attributes."""
    return type("Defined", (Workflow,), {"name": "defined", **steps})


class ChargeCard(Activity):
    """Charge the customer's card."""

    retry = FIVE_TIMES
    timeout = 30
    undo = {"retry": NEVER_AGAIN, "lease": 5}

    def __init__(self, currency: str, **options: Any) -> None:
        self.currency = currency
        super().__init__(**options)

    def run(self, ctx: Context) -> dict[str, Any]:
        return {"charged": f"{ctx['amount']} {self.currency}"}

    def handle_signal(self, ctx: Context, signal: Signal) -> Outcome:
        return Fail(f"the bank says {signal.name}")

    def handle_timeout(self, ctx: Context) -> Outcome:
        return Retry("bank is silent")

    def compensate(self, ctx: Context, result: Any) -> None:
        raise RuntimeError(f"refund {result}")


class Order(Workflow):
    """Fulfil an order."""

    name = "order"
    abstract = True

    @step
    def reserve(self, ctx: Context) -> None:
        """Take it from the shelf."""

    @reserve.compensation
    def release(self, ctx: Context, result: Any) -> None:
        raise RuntimeError(f"released {result}")

    @activity(retry=FIVE_TIMES, timeout=timedelta(seconds=30), lease=10, queue="bank")
    def charge(self, ctx: Context) -> dict[str, Any]:
        return {"charge_id": ctx["amount"]}

    @charge.compensation(retry=NEVER_AGAIN, atomic=True, timeout=5)
    def refund(self, ctx: Context, result: Any) -> None: ...

    @step(key="await-payment", goes_to=["charge"])
    def await_payment(self, ctx: Context) -> Outcome:
        return Await("paid", "refused", timeout=3600)

    @await_payment.on_signal
    def payment_answered(self, ctx: Context, signal: Signal) -> Outcome | Mapping[str, Any]:
        return Fail("card declined") if signal.name == "refused" else {"payment": signal.data["id"]}

    @await_payment.on_timeout
    def remind(self, ctx: Context) -> Outcome:
        return Goto("charge")


def bound(key: str, workflow: Workflow[Any] | None = None) -> BoundStep:
    workflow = Order() if workflow is None else workflow
    return workflow.steps[key].bind(workflow)


# --- what a class knows -------------------------------------------------------------------------


def test_steps_are_kept_in_the_order_of_their_declaration() -> None:
    assert Order.step_keys() == tuple(Order.steps) == ("reserve", "charge", "await-payment")


def test_every_option_is_resolved() -> None:
    assert Order.steps["charge"] == Declaration(
        key="charge",
        attribute="charge",
        step=Order.charge,
        retry=FIVE_TIMES,
        queue="bank",
        goes_to=None,
        timeout=timedelta(seconds=30),
        lease=timedelta(seconds=10),
        compensation=CompensationOptions(
            retry=NEVER_AGAIN, atomic=True, timeout=timedelta(seconds=5), lease=timedelta(seconds=10)
        ),
        handlers={"compensation": "refund"},
        description="",
    )


def test_a_bare_step_has_the_defaults() -> None:
    reserve = Order.steps["reserve"]
    assert (reserve.is_activity, reserve.retry, reserve.queue, reserve.goes_to) == (False, RetryPolicy(), "", None)
    assert reserve.compensation == CompensationOptions(
        retry=RetryPolicy(), atomic=False, timeout=timedelta(seconds=300), lease=timedelta(seconds=60)
    )
    assert reserve.description == "Take it from the shelf."


def test_a_key_may_differ_from_the_name_of_the_method() -> None:
    awaiting = Order.steps["await-payment"]
    assert (awaiting.key, awaiting.attribute, awaiting.goes_to) == ("await-payment", "await_payment", ("charge",))


def test_the_workflow_gives_a_policy_to_the_steps_without_one() -> None:
    class Careful(Order):
        abstract = True
        retry = NEVER_AGAIN

    policies = {key: (step.retry, step.compensation.retry) for key, step in Careful.steps.items()}
    assert policies == {
        "reserve": (NEVER_AGAIN, NEVER_AGAIN),
        "charge": (FIVE_TIMES, NEVER_AGAIN),
        "await-payment": (NEVER_AGAIN, NEVER_AGAIN),
    }


def test_the_declarations_are_read_only() -> None:
    steps: Any = Order.steps
    with pytest.raises(TypeError, match=r"^'mappingproxy' object does not support item assignment$"):
        steps["charge"] = steps["reserve"]
    with pytest.raises(AttributeError, match=r"^cannot assign to field 'retry'$"):
        steps["charge"].retry = NEVER_AGAIN


@pytest.mark.parametrize(
    ("body", "label", "description"),
    [
        ({}, "Defined", ""),
        ({"name": "fulfil_order"}, "Fulfil order", ""),
        ({"label": "Bestellung", "__doc__": "  Indented.\n\n    More."}, "Bestellung", "Indented.\n\nMore."),
    ],
)
def test_a_workflow_describes_itself(body: dict[str, Any], label: str, description: str) -> None:
    workflow = define(only=step(lambda self, ctx: None), **body)
    assert (workflow.label, workflow.description) == (label, description)


def test_a_label_is_not_translated_while_the_class_is_defined() -> None:
    class Lazy:
        def __str__(self) -> str:
            raise AssertionError("translations are not ready at import")

        def __bool__(self) -> bool:
            return bool(str(self))

    label = Lazy()
    assert define(only=step(lambda self, ctx: None), label=label).label is label


# --- what runs ----------------------------------------------------------------------------------


def test_on_a_workflow_object_a_step_is_a_plain_callable() -> None:
    assert Order().charge(context(amount="1.00")) == {"charge_id": "1.00"}
    assert Order().payment_answered(context(), PAID) == {"payment": "pay_1"}
    assert Order().remind(context()) == Goto("charge")


def test_on_the_class_it_is_its_declaration() -> None:
    assert isinstance(Order.charge, Activity)
    assert isinstance(Order.reserve, Step)
    assert not isinstance(Order.reserve, Activity)


def test_a_handler_is_a_plain_function_on_the_class_too() -> None:
    assert Order.remind(Order(), context()) == Goto("charge")
    assert Order.remind.__name__ == "remind"


def test_the_engine_runs_a_step_and_its_handlers() -> None:
    awaiting = bound("await-payment")
    assert awaiting.key == "await-payment"
    assert awaiting.run(context()) == Await("paid", "refused", timeout=3600)
    assert awaiting.handle_signal(context(), REFUSED) == Fail("card declined")
    assert awaiting.handle_timeout(context()) == Goto("charge")
    with pytest.raises(RuntimeError, match=r"^released 3$"):
        bound("reserve").compensate(context(), 3)


@pytest.mark.parametrize(
    ("key", "signals", "timeout", "compensates"),
    [("reserve", False, False, True), ("charge", False, False, True), ("await-payment", True, True, False)],
)
def test_a_step_knows_which_handlers_it_has(key: str, *, signals: bool, timeout: bool, compensates: bool) -> None:
    step = bound(key)
    assert (step.handles_signals, step.handles_timeout, step.compensates) == (signals, timeout, compensates)


@pytest.mark.parametrize(
    "call",
    [
        lambda step: step.handle_signal(context(), PAID),
        lambda step: step.handle_timeout(context()),
        lambda step: step.compensate(context(), None),
    ],
    ids=["signal", "timeout", "compensation"],
)
def test_a_handler_that_is_not_declared_cannot_be_called(call: Callable[[BoundStep], object]) -> None:
    bare = define(only=step(lambda self, ctx: None))
    with pytest.raises(
        HandlerMissingError, match=r"^Defined no longer declares @only\.\w+, which this instance needs\."
    ):
        call(bare.steps["only"].bind(bare()))


def test_one_method_can_answer_for_several_steps() -> None:
    class Approval(Workflow):
        name = "approval"

        @step
        def first(self, ctx: Context) -> Outcome:
            return Await("decided")

        @step
        def second(self, ctx: Context) -> Outcome:
            return Await("decided")

        @first.on_signal
        @second.on_signal
        @second.on_timeout
        def decided(self, ctx: Context, signal: Signal | None = None) -> Outcome:
            return Fail(signal.name if signal else "timeout")

    first, second = (declaration.bind(Approval()) for declaration in Approval.steps.values())
    assert first.handle_signal(context(), PAID) == second.handle_signal(context(), PAID) == Fail("paid")
    assert (first.handles_timeout, second.handle_timeout(context())) == (False, Fail("timeout"))


def test_a_decorator_above_a_handler_does_not_hide_it() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any) -> Any:
            return {"logged": function(*args)}

        return wrapper

    class Logged(Workflow):
        name = "logged"

        @step
        def wait(self, ctx: Context) -> Outcome:
            return Await("paid")

        @logged
        @wait.on_signal
        def answered(self, ctx: Context, signal: Signal) -> Mapping[str, Any]:
            return {"data": signal.data}

    assert Logged.steps["wait"].bind(Logged()).handle_signal(context(), PAID) == {"logged": {"data": {"id": "pay_1"}}}


# --- steps to reuse -----------------------------------------------------------------------------


class Shop(Workflow):
    name = "shop"
    abstract = True

    deposit = ChargeCard("EUR")
    rest = ChargeCard("JPY", retry=NEVER_AGAIN, timeout=timedelta(minutes=1), key="charge_rest", goes_to=("deposit",))


def test_a_reused_step_runs_with_its_own_parameters() -> None:
    assert Shop().deposit(context(amount=5)) == {"charged": "5 EUR"}
    assert bound("charge_rest", Shop()).run(context(amount=5)) == {"charged": "5 JPY"}


def test_the_options_of_its_class_can_be_overridden_where_it_is_used() -> None:
    deposit, rest = Shop.steps.values()
    assert (deposit.retry, deposit.timeout, deposit.lease) == (
        FIVE_TIMES,
        timedelta(seconds=30),
        timedelta(seconds=60),
    )
    assert (rest.retry, rest.timeout, rest.goes_to) == (NEVER_AGAIN, timedelta(minutes=1), ("deposit",))
    assert (deposit.is_activity, deposit.description) == (True, "Charge the customer's card.")
    assert deposit.compensation == CompensationOptions(
        retry=NEVER_AGAIN, atomic=False, timeout=timedelta(seconds=30), lease=timedelta(seconds=5)
    )


def test_the_methods_of_its_class_are_its_handlers() -> None:
    deposit = bound("deposit", Shop())
    assert (deposit.handles_signals, deposit.handles_timeout, deposit.compensates) == (True, True, True)
    assert deposit.handle_signal(context(), REFUSED) == Fail("the bank says refused")
    assert deposit.handle_timeout(context()) == Retry("bank is silent")
    with pytest.raises(RuntimeError, match=r"^refund 7$"):
        deposit.compensate(context(), 7)


def test_a_workflow_can_answer_for_a_reused_step_itself() -> None:
    class PatientShop(Shop):
        name = "patient_shop"

        @Shop.deposit.on_signal
        def deposit_answered(self, ctx: Context, signal: Signal) -> Outcome:
            return Goto("charge_rest")

        @Shop.deposit.compensation(timeout=9)
        def give_back(self, ctx: Context, result: Any) -> None: ...

    patient = bound("deposit", PatientShop())
    assert patient.handle_signal(context(), REFUSED) == Goto("charge_rest")
    assert patient.compensate(context(), None) is None
    assert patient.compensation == CompensationOptions(
        retry=NEVER_AGAIN, atomic=False, timeout=timedelta(seconds=9), lease=timedelta(seconds=5)
    )


def test_one_step_object_can_serve_in_several_workflows() -> None:
    shared = ChargeCard("EUR")
    here, there = define(pay=shared), define(settle=shared)
    assert (here.step_keys(), there.step_keys()) == (("pay",), ("settle",))


def test_a_subclass_can_pass_its_options_on_with_their_types() -> None:
    options: ActivityOptions = {"timeout": 5, "lease": 1}
    assert Activity(**options).timeout == 5


# --- types --------------------------------------------------------------------------------------


@dataclass
class OrderData:
    amount: Decimal


class Typed(Workflow[OrderData]):
    name = "typed"
    abstract = True
    context_class = OrderData

    @step
    def charge(self, ctx: Context[OrderData]) -> dict[str, Decimal]:
        return {"charged": ctx.data.amount}


def test_types_reach_from_the_context_to_the_caller() -> None:
    ctx: Context[OrderData] = Context(
        data={"amount": "1.00"},
        context_class=Typed.context_class,
        workflow="typed",
        instance_id=UUID(int=0),
        step="charge",
        visit=1,
        attempt=1,
        idempotency_key="key",
        now=NOON,
    )
    assert Typed().charge(ctx)["charged"] == Decimal("1.00")
