from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations import Activity, BoundStep, Step, activity, step
from workflow_engine.domain.outcomes import Await, Fail, Finish, Outcome
from workflow_engine.domain.received import Signal
from workflow_engine.domain.registry import registry
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.workflows import Workflow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CTX: Context[Any] = Context(
    data={},
    workflow="order",
    instance_id=UUID(int=0),
    step="charge",
    visit=1,
    attempt=1,
    idempotency_key="key",
    now=NOON,
)
PAID = Signal(id=1, name="paid", data={}, actor="", received_at=NOON)
NOTHING: Any = None


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        registry._classes.clear()
        yield


class Base(Workflow):
    abstract = True

    @step
    def reserve(self, ctx: Context) -> dict[str, Any]:
        return {"said": ["base"]}

    @activity(retry=RetryPolicy(max_attempts=7))
    def charge(self, ctx: Context) -> Outcome | None:
        return Await("paid")

    @charge.on_signal
    def charged(self, ctx: Context, signal: Signal) -> Outcome | None:
        return Fail("base")

    @charge.compensation
    def refund(self, ctx: Context, result: Any) -> None: ...

    @step
    def ship(self, ctx: Context) -> None: ...


def bound(workflow: type[Workflow[Any]], key: str) -> BoundStep:
    return workflow.steps[key].bind(workflow())


def test_the_steps_of_the_base_come_first() -> None:
    class Longer(Base):
        abstract = True

        @step
        def thank(self, ctx: Context) -> None: ...

    assert Longer.step_keys() == ("reserve", "charge", "ship", "thank")


def test_a_method_of_the_same_name_replaces_the_code_and_keeps_the_declaration() -> None:
    class Louder(Base):
        abstract = True

        def reserve(self, ctx: Context) -> dict[str, Any]:
            return {"said": [*super().reserve(ctx)["said"], "louder"]}

        def charge(self, ctx: Context) -> Outcome | None:
            return Finish()

    assert Louder.step_keys() == ("reserve", "charge", "ship")
    assert Louder.steps["charge"] == Base.steps["charge"]
    assert bound(Louder, "reserve").run(CTX) == {"said": ["base", "louder"]}
    assert bound(Louder, "charge").run(CTX) == Finish()
    assert bound(Louder, "charge").handle_signal(CTX, PAID) == Fail("base")


def test_a_handler_is_found_by_name_so_overriding_it_works() -> None:
    class Kinder(Base):
        abstract = True

        def charged(self, ctx: Context, signal: Signal) -> Outcome | None:
            return Finish({"instead of": super().charged(ctx, signal)})

    assert bound(Kinder, "charge").handle_signal(CTX, PAID) == Finish({"instead of": Fail("base")})


def test_a_step_declared_again_keeps_its_place_and_loses_the_old_handlers() -> None:
    class Again(Base):
        abstract = True

        @step(key="charge_again")
        def charge(self, ctx: Context) -> Outcome | None:
            return super().charge(ctx)

    charge = bound(Again, "charge_again")
    assert Again.step_keys() == ("reserve", "charge_again", "ship")
    assert (charge.declaration.is_activity, charge.handles_signals, charge.compensates) == (False, False, False)
    assert charge.run(CTX) == Await("paid")


def test_none_removes_a_step_with_its_handlers() -> None:
    class Free(Base):
        abstract = True
        charge = NOTHING

    assert Free.step_keys() == ("reserve", "ship")


def test_a_removed_step_that_comes_back_comes_last() -> None:
    class Free(Base):
        abstract = True
        charge = NOTHING

    class PaidAtTheDoor(Free):
        abstract = True

        @step
        def charge(self, ctx: Context) -> Outcome | None:
            return None

    assert PaidAtTheDoor.step_keys() == ("reserve", "ship", "charge")


def test_none_removes_a_handler() -> None:
    class Final(Base):
        abstract = True
        refund = NOTHING

    assert (bound(Final, "charge").compensates, bound(Final, "charge").handles_signals) == (False, True)


def test_a_subclass_can_give_an_inherited_step_a_handler_and_its_base_never_knows() -> None:
    class Patient(Base):
        abstract = True

        @Base.charge.on_timeout
        def wait_on(self, ctx: Context) -> Outcome:
            return Await("paid")

        @Base.charge.on_signal
        def charged_after_all(self, ctx: Context, signal: Signal) -> None: ...

    assert bound(Patient, "charge").handle_timeout(CTX) == Await("paid")
    assert bound(Patient, "charge").handle_signal(CTX, PAID) is None
    assert Base.steps["charge"].handlers == {"on_signal": "charged", "compensation": "refund"}
    assert not bound(Base, "charge").handles_timeout


def test_a_handler_for_a_base_step_finds_it_when_it_was_declared_again_in_between() -> None:
    class Middle(Base):
        abstract = True

        @step
        def charge(self, ctx: Context) -> Outcome | None:
            return None

    class Bottom(Middle):
        abstract = True

        @Base.charge.on_timeout
        def wait_on(self, ctx: Context) -> Outcome:
            return Finish()

    assert bound(Bottom, "charge").handle_timeout(CTX) == Finish()
    assert not bound(Middle, "charge").handles_timeout


def test_steps_of_several_bases_come_in_the_order_of_python_s_method_resolution() -> None:
    class Left(Base):
        abstract = True

        @step
        def left(self, ctx: Context) -> None: ...

        def reserve(self, ctx: Context) -> dict[str, Any]:
            return {"said": [*super().reserve(ctx)["said"], "left"]}

    class Right(Base):
        abstract = True

        @step
        def right(self, ctx: Context) -> None: ...

        def reserve(self, ctx: Context) -> dict[str, Any]:
            return {"said": [*super().reserve(ctx)["said"], "right"]}

    class Both(Left, Right):
        abstract = True

    assert Both.step_keys() == ("reserve", "charge", "ship", "right", "left")
    assert bound(Both, "reserve").run(CTX) == {"said": ["base", "right", "left"]}


def test_a_mixin_that_is_no_workflow_can_bring_steps_and_override_them() -> None:
    class Greeting:
        @step
        def greet(self, ctx: Context) -> Outcome | None:
            return Await("greeted")

        @greet.on_signal
        def greeted(self, ctx: Context, signal: Signal) -> Outcome:
            return Finish("hello")

    class Loud:
        def reserve(self, ctx: Context) -> dict[str, Any]:
            return {"said": ["mixin"]}

    mixed: Any = type("Mixed", (Loud, Greeting, Base), {"abstract": True})
    assert mixed.step_keys() == ("reserve", "charge", "ship", "greet")
    assert bound(mixed, "reserve").run(CTX) == {"said": ["mixin"]}
    assert bound(mixed, "greet").handle_signal(CTX, PAID) == Finish("hello")


def test_a_reused_step_can_be_overridden_by_a_method() -> None:
    class Charge(Activity):
        def run(self, ctx: Context) -> dict[str, Any]:
            return {"charged": 1}

        def compensate(self, ctx: Context, result: Any) -> None: ...

    class Shop(Workflow):
        abstract = True
        charge = Charge(timeout=7)

    class Discount(Shop):
        abstract = True

        def charge(self, ctx: Context) -> dict[str, Any]:
            return {"charged": super().charge(ctx)["charged"] / 2}

    assert bound(Discount, "charge").run(CTX) == {"charged": 0.5}
    assert bound(Discount, "charge").compensates
    assert Discount.steps["charge"] == Shop.steps["charge"]


def test_an_abstract_base_may_leave_the_code_to_its_subclasses() -> None:
    class Template(Workflow):
        abstract = True
        charge = Step(goes_to=("later",))

    class Concrete(Template):
        name = "concrete"

        def charge(self, ctx: Context) -> Outcome:
            return Finish()

        @step
        def later(self, ctx: Context) -> None: ...

    assert bound(Concrete, "charge").run(CTX) == Finish()


def test_a_name_and_being_abstract_are_not_inherited() -> None:
    class First(Base):
        name = "first"
        version = 2
        label = "The first"

    class Second(First):
        """Its own words."""

        name = "second"

    assert (Base.name, First.name, Second.name) == ("", "first", "second")
    assert (Base.abstract, First.abstract, Second.abstract) == (True, False, False)
    assert (Second.version, Second.label, Second.description, First.description) == (2, "Second", "Its own words.", "")
    assert list(registry) == [First, Second]
