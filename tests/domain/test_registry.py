from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations import step
from workflow_engine.domain.registry import Registry, registry
from workflow_engine.domain.workflows import Workflow
from workflow_engine.exceptions import DefinitionError, UnknownWorkflowError


def define(name: str, version: int = 1, *keys: str) -> type[Workflow[Any]]:
    """A workflow of its own name, version and step keys, registered nowhere."""

    def nothing(self: object, ctx: Context) -> None: ...

    body = {"name": name, "version": version, **{key: step(nothing) for key in keys or ("only",)}}
    with registry.isolated():
        registry._classes.clear()
        return type(f"{name.title()}{version}", (Workflow,), body)


ORDER_1 = define("order", 1, "reserve", "charge", "ship")
ORDER_2 = define("order", 2, "reserve", "charge", "pack", "ship")
ORDER_3 = define("order", 3, "reserve", "pay", "ship")
REFUND_1 = define("refund")


@pytest.fixture
def known() -> Registry:
    known = Registry()
    for workflow in (REFUND_1, ORDER_3, ORDER_1, ORDER_2):
        known.register(workflow)
    return known


def test_versions_live_side_by_side(known: Registry) -> None:
    assert list(known) == [ORDER_1, ORDER_2, ORDER_3, REFUND_1]
    assert len(known) == 4
    assert (known.names(), known.versions("order"), known.versions("invoice")) == (("order", "refund"), (1, 2, 3), ())


def test_a_workflow_is_found_by_name_and_version_or_as_the_newest(known: Registry) -> None:
    assert (known.exact("order", 2), known.newest("order"), known.get("order", 1)) == (ORDER_2, ORDER_3, ORDER_1)
    assert known.get("order", 4) is None


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (lambda known: known.newest("ordr"), "No workflow 'ordr' is registered. Did you mean 'order'?"),
        (lambda known: known.newest("x"), "No workflow 'x' is registered. Known: order, refund."),
        (
            lambda known: known.exact("refund", 7),
            "No workflow 'refund' version 7 is registered. Known: refund version 1.",
        ),
        (lambda known: known.exact("x", 1), "No workflow 'x' version 1 is registered. Known: order, refund."),
    ],
)
def test_an_unknown_workflow_is_an_error_that_says_what_is_known(known: Registry, find: Any, message: str) -> None:
    with pytest.raises(UnknownWorkflowError) as refused:
        find(known)
    assert str(refused.value) == f"{message} Workflows are found in the 'workflows' module of installed apps."


@pytest.mark.parametrize(
    ("version", "remaining", "runs_on"),
    [
        (1, ["no longer there"], ORDER_1),
        (9, ["ship"], ORDER_3),
        (9, ["charge", "ship"], ORDER_2),
        (9, [], ORDER_3),
        (9, ["charge", "pay"], None),
    ],
    ids=["exact", "newest", "newest with every step", "nothing remains", "none has every step"],
)
def test_a_row_runs_on_its_version_else_on_the_newest_that_has_every_remaining_step(
    known: Registry, version: int, remaining: list[str], runs_on: type | None
) -> None:
    assert known.for_row("order", version, remaining) is runs_on


def test_a_row_of_an_unknown_workflow_is_left_to_others(known: Registry) -> None:
    assert known.for_row("invoice", 1, []) is None


def test_a_class_that_is_defined_again_replaces_itself(known: Registry) -> None:
    again = define("order", 1)
    known.register(again)
    assert known.exact("order", 1) is again


def test_another_class_cannot_take_a_name_and_version(known: Registry) -> None:
    with registry.isolated():
        registry._classes.clear()

        class Impostor(Workflow):
            name = "order"

            @step
            def reserve(self, ctx: Context) -> None: ...

    with pytest.raises(DefinitionError) as refused:
        known.register(Impostor)
    assert str(refused.value) == (
        "Impostor: 'order' version 1 is already defined by tests.domain.test_registry.Order1. Give it another name, or"
        " a higher version if it is the newer one."
    )


@pytest.fixture
def outside() -> Iterator[list[type]]:
    before = list(registry)
    yield before
    assert list(registry) == before


def test_what_is_defined_in_isolation_is_forgotten_afterwards(outside: list[type]) -> None:
    with registry.isolated() as isolated:

        class Passing(Workflow):
            name = "passing"

            @step
            def pass_by(self, ctx: Context) -> None: ...

        assert isolated.newest("passing") is Passing
        assert set(outside) < set(isolated)
