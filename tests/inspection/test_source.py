from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import workflow_engine
from workflow_engine import Await, Context, Goto, Signal, Step, Workflow, step
from workflow_engine.domain import outcomes
from workflow_engine.domain.registry import registry
from workflow_engine.inspection.source import Mention, mentions

SHIPPED = "shipped"
COMPUTED = ["a", "b"]


@pytest.fixture(autouse=True)
def isolated() -> Iterator[None]:
    with registry.isolated():
        yield


def seen(workflow: type[Workflow[Any]], key: str) -> list[tuple[str, tuple[str, ...], str]]:
    found = mentions(workflow, workflow.steps[key])
    return [(mention.outcome.__name__, mention.names, mention.function) for mention in found]


def test_literals_constants_and_dotted_names_are_read() -> None:
    local = "closed over"

    class Flow(Workflow):
        name = "flow"

        @step
        def first(self, ctx: Context) -> Any:
            if ctx.get("a"):
                return Await("paid", SHIPPED, local, timeout=3)
            if ctx.get("b"):
                return workflow_engine.Goto("first")
            return outcomes.Goto(step="first", updates={"a": "b"})

    assert seen(Flow, "first") == [
        ("Await", ("paid", "shipped", "closed over"), "first"),
        ("Goto", ("first",), "first"),
        ("Goto", ("first",), "first"),
    ]


def test_the_line_is_that_of_the_call() -> None:
    class Flow(Workflow):
        name = "flow"

        @step
        def first(self, ctx: Context) -> Any:
            # a comment

            return Await("paid")

    (mention,) = mentions(Flow, Flow.steps["first"])
    assert mention == Mention(outcome=Await, names=("paid",), function="first", line=mention.line)
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert source[mention.line - 1].strip() == 'return Await("paid")'


def test_what_is_computed_is_left_to_the_run() -> None:
    class Flow(Workflow):
        name = "flow"

        @step
        def first(self, ctx: Context) -> Any:
            SHIPPED = ctx["name"]  # noqa: N806 - hides the module's constant
            if ctx.get("a"):
                return Await(*COMPUTED)
            if ctx.get("b"):
                return Goto(ctx["target"])
            return Await(SHIPPED, "known", ctx["third"])

    assert seen(Flow, "first") == [("Await", ("known",), "first")]


def test_another_function_of_that_name_is_not_the_outcome() -> None:
    def Await(*names: str) -> None:  # noqa: N802 - the same name on purpose
        pass

    class Flow(Workflow):
        name = "flow"

        @step
        def first(self, ctx: Context) -> None:
            Await("a", "b")

            def inner() -> Any:
                return Goto("nowhere")

    assert seen(Flow, "first") == []


def test_handlers_overrides_and_reused_steps_are_read_too() -> None:
    class Asks(Step[Any]):
        def run(self, ctx: Context) -> Any:
            return Await("asked")

        def handle_timeout(self, ctx: Context) -> Any:
            return Goto("nowhere")

    class Base(Workflow):
        abstract = True
        asks = Asks()

        @step
        def second(self, ctx: Context) -> Any:
            return Await("base")

        @second.on_signal
        def answered(self, ctx: Context, signal: Signal) -> Any:
            return Await("again")

        @second.on_timeout
        def late(self, ctx: Context) -> Any:
            return Goto("asks")

    class Flow(Base):
        name = "flow"

        def second(self, ctx: Context) -> Any:
            return Await("overridden")

    assert seen(Flow, "asks") == [("Await", ("asked",), "run"), ("Goto", ("nowhere",), "handle_timeout")]
    assert seen(Flow, "second") == [
        ("Await", ("overridden",), "second"),
        ("Await", ("again",), "answered"),
        ("Goto", ("asks",), "late"),
    ]


def test_a_decorated_step_is_read_below_its_decorator() -> None:
    def noisy(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any) -> Any:
            return function(*args)

        return call

    class Flow(Workflow):
        name = "flow"

        @step
        @noisy
        def first(self, ctx: Context) -> Any:
            return Goto("nowhere")

    assert seen(Flow, "first") == [("Goto", ("nowhere",), "first")]


def test_code_without_source_is_passed_over() -> None:
    names: dict[str, Any] = {"Goto": Goto}
    exec("def first(self, ctx): return Goto('nowhere')", names)  # noqa: S102 - how else to have no source
    flow = type("Flow", (Workflow,), {"name": "flow", "first": step(names["first"])})
    assert seen(flow, "first") == []
