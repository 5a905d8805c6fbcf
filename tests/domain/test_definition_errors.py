from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations import Activity, Step, activity, step
from workflow_engine.domain.registry import registry
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.workflows import Workflow
from workflow_engine.exceptions import DefinitionError

SLUG = "Use 1 to 100 of the characters A-Z, a-z, 0-9, '_', '.' and '-'."
DURATION = "Give a timedelta or a number of seconds, from 0 up to 1000 years."
ASYNC = (
    "it is async, but the engine calls plain functions. Write a plain def; asgiref's async_to_sync calls async code."
)
NO_NAME = 'it has no name of its own. Add name = "…", which rows will store, or abstract = True for a base.'
RESERVED = "every workflow has an attribute of that name. Rename the method; a step can keep its key with"
OF_A_STRANGER = (
    "of a step that this workflow does not have. Decorate it with a step declared above it or an inherited one"
    " (@Base.charge.on_signal), and give it a name of its own."
)
NO_STEP = "it replaces an inherited step by 3. Replace it by a method or a step, or remove it with None."
NO_RETRY = "Count all attempts: 1 or more; 1 is no retry."
NOTHING: Any = None
SEVEN: Any = 7
ONE_MINUTE: Any = "1m"


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        registry._classes.clear()
        yield


def nothing(self: object, ctx: Context) -> None: ...


def handle(self: object, ctx: Context, *args: Any) -> None: ...


async def promise(self: object, ctx: Context, *args: Any) -> None: ...


PROMISE: Any = promise


class Charge(Activity):
    def run(self, ctx: Context) -> None: ...


class Base(Workflow):
    abstract = True

    @step
    def charge(self, ctx: Context) -> None: ...

    @charge.on_signal
    def charged(self, ctx: Context, signal: object) -> None: ...


CHARGE = step(nothing)
STRANGER = step(nothing)
A_STEP: Any = CHARGE
WRAPPED = wraps(A_STEP)(nothing)


def wrong(**options: Any) -> Any:
    """Options that no type checker would let pass."""
    return options


def order(*bases: type, **body: Any) -> type:
    """A workflow class of that body."""
    return type("Order", bases or (Workflow,), {"name": "order", **body})


def refused(define: Callable[[], object]) -> str:
    with pytest.raises(DefinitionError) as error:
        define()
    assert list(registry) == [], "a class that is refused must not be registered"
    return str(error.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": ""}, f"Order: {NO_NAME}"),
        ({"name": None}, f"Order: {NO_NAME}"),
        ({"name": 7}, f"Order: the name is 7. {SLUG}"),
        ({"name": "my order"}, f"Order: the name is 'my order'. {SLUG}"),
        ({"name": "bestellung\n"}, f"Order: the name is 'bestellung\\n'. {SLUG}"),
        ({"name": "o" * 101}, f"Order: the name is '{'o' * 50}…'. {SLUG}"),
        ({"version": 0}, "Order: version is 0. Count versions from 1."),
        ({"version": "2"}, "Order: version is '2'. Count versions from 1."),
        ({"version": True}, "Order: version is True. Count versions from 1."),
        ({"queue": None}, 'Order: queue is None. Give the name of a queue; "" is the default one.'),
        ({"retry": 3}, "Order: retry is 3. Give a RetryPolicy(max_attempts=…)."),
        ({"context_class": dict}, "Order: context_class is a type. Give a class made by @dataclass."),
        ({"charge": None}, "Order: it has no steps. Declare one with @step, or add abstract = True for a base."),
    ],
)
def test_a_wrong_workflow_is_refused(body: dict[str, Any], message: str) -> None:
    assert refused(lambda: order(**{"charge": CHARGE, **body})) == message


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: step(key="a b")(nothing), f"the key is 'a b'. {SLUG}"),
        (lambda: step(key=SEVEN)(nothing), f"the key is 7. {SLUG}"),
        (lambda: step(retry=SEVEN)(nothing), "retry is 7. Give a RetryPolicy(max_attempts=…)."),
        (lambda: step(queue=NOTHING)(nothing), 'queue is None. Give the name of a queue; "" is the default one.'),
        (
            lambda: step(goes_to="charge")(nothing),
            "goes_to is 'charge'. List the keys of steps: goes_to=(\"charge\",).",
        ),
        (lambda: step(goes_to=SEVEN)(nothing), 'goes_to is 7. List the keys of steps: goes_to=("charge",).'),
        (
            lambda: step(goes_to=["chrage"])(nothing),
            "goes_to names 'chrage', which is no step here. Did you mean 'charge'?",
        ),
        (
            lambda: step(goes_to=["x"])(nothing),
            "goes_to names 'x', which is no step here. Known: charge.",
        ),
        (lambda: activity(timeout=-1)(nothing), f"timeout is -1. {DURATION}"),
        (lambda: activity(timeout=0)(nothing), "timeout is 0. Give it some time."),
        (lambda: activity(lease=ONE_MINUTE)(nothing), f"lease is '1m'. {DURATION}"),
        (lambda: step(PROMISE), ASYNC),
        (Step, "nothing says what it does. Write its run(ctx), or a method of that name."),
    ],
)
def test_a_wrong_step_is_refused_with_class_and_name(declare: Callable[[], object], message: str) -> None:
    assert refused(lambda: order(charge=declare())) == f"Order.charge: {message}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"charge": CHARGE, "pay": step(key="charge")(nothing)},
            "Order.pay: the key 'charge' is already taken by the step 'charge'. Give each step a key of its own.",
        ),
        (
            {"retry": CHARGE},
            f"Order.retry: {RESERVED} key='retry'.",
        ),
        (
            {"charge": CHARGE, "steps": CHARGE.on_signal(handle)},
            f"Order.steps: {RESERVED} key='steps'.",
        ),
        (
            {"charge": CHARGE, "answer": STRANGER.on_signal(handle)},
            f"Order.answer: it is the on_signal {OF_A_STRANGER}",
        ),
        (
            {"charge": STRANGER.on_timeout(handle), "ship": CHARGE},
            f"Order.charge: it is the on_timeout {OF_A_STRANGER}",
        ),
        (
            {"charge": CHARGE, "undo": CHARGE.compensation(handle), "revert": CHARGE.compensation(handle)},
            "Order.revert: the step 'charge' already has 'undo' as its compensation. Keep one of the two.",
        ),
        ({"charge": CHARGE, "undo": CHARGE.compensation(PROMISE)}, f"Order.undo: {ASYNC}"),
        ({"charge": CHARGE, "answer": CHARGE.on_signal(PROMISE)}, f"Order.answer: {ASYNC}"),
        ({"charge": CHARGE, "both": CHARGE.on_signal(CHARGE.on_timeout(PROMISE))}, f"Order.both: {ASYNC}"),
        (
            {"charge": CHARGE, "undo": CHARGE.compensation(timeout=0)(handle)},
            "Order.charge compensation: timeout is 0. Give it some time.",
        ),
        (
            {"charge": CHARGE, "undo": CHARGE.compensation(retry=SEVEN)(handle)},
            "Order.charge compensation: retry is 7. Give a RetryPolicy(max_attempts=…).",
        ),
        (
            {"charge": Charge(undo=wrong(atomc=True))},
            "Order.charge compensation: there is no option 'atomc'. Did you mean 'atomic'?",
        ),
        (
            {"charge": WRAPPED},
            "Order.charge: another decorator hides that this is a step. Put @step or @activity on top of the others.",
        ),
    ],
)
def test_steps_and_handlers_that_do_not_fit_together_are_refused(body: dict[str, Any], message: str) -> None:
    assert refused(lambda: order(**body)) == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"charge": 3},
            f"Order.charge: {NO_STEP}",
        ),
        (
            {"charge": Base.charge.on_timeout(handle)},
            "Order.charge: a handler takes the name of an inherited step. Give it a name of its own.",
        ),
        ({"charge": promise}, f"Order.charge: {ASYNC}"),
        ({"charged": promise}, f"Order.charged: {ASYNC}"),
        ({"name": ""}, f"Order: {NO_NAME}"),
        (
            {"charge": None, "ship": CHARGE, "answer": Base.charge.on_timeout(handle)},
            f"Order.answer: it is the on_timeout {OF_A_STRANGER}",
        ),
    ],
)
def test_a_wrong_override_is_refused(body: dict[str, Any], message: str) -> None:
    assert refused(lambda: order(Base, **body)) == message


def test_a_name_of_the_base_is_not_enough() -> None:
    class Named(Base):
        name = "named"

    with pytest.raises(DefinitionError) as error:
        type("Nameless", (Named,), {})
    assert str(error.value) == f"Nameless: {NO_NAME}"


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: step(**wrong(retires=3)), "@step: there is no option 'retires'. Did you mean 'retry'?"),
        (
            lambda: step(**wrong(timeout=3)),
            "@step: there is no option 'timeout'. Known: goes_to, key, queue, retry, undo.",
        ),
        (lambda: activity(**wrong(time_out=3)), "@activity: there is no option 'time_out'. Did you mean 'timeout'?"),
        (
            lambda: CHARGE.compensation(**wrong(atomc=True)),
            "compensation: there is no option 'atomc'. Did you mean 'atomic'?",
        ),
        (lambda: Charge(**wrong(leese=3)), "Charge: there is no option 'leese'. Did you mean 'lease'?"),
        (
            lambda: RetryPolicy(max_attempts=0),
            f"RetryPolicy: max_attempts is 0. {NO_RETRY}",
        ),
        (lambda: type("Slow", (Step,), {"run": promise}), f"Slow.run: {ASYNC}"),
        (lambda: type("Slow", (Activity,), {"handle_signal": promise}), f"Slow.handle_signal: {ASYNC}"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_is_written(declare: Callable[[], object], message: str) -> None:
    assert refused(declare) == message
