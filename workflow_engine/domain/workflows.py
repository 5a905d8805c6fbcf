"""Workflow: the base class of every definition. A wrong one fails where it is defined."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, ClassVar, Generic

from workflow_engine.domain.context import T
from workflow_engine.domain.declarations import Declaration
from workflow_engine.domain.declarations.checks import (
    check_context_class,
    check_policy,
    check_queue,
    check_slug,
    check_version,
)
from workflow_engine.domain.declarations.collecting import collect
from workflow_engine.domain.registry import registry
from workflow_engine.domain.retries import DEFAULT_RETRY, RetryPolicy
from workflow_engine.exceptions import DefinitionError, nearest


class Workflow(Generic[T]):
    """A business process: its steps, in the order in which they are declared. `T` is the `context_class`.

    Defining a subclass registers it, unless it says `abstract = True`. Base classes come first, like form fields.
    """

    name: ClassVar[str] = ""
    """What rows store: never change it, never reuse it. Not inherited."""
    version: ClassVar[int] = 1
    """Raise it when steps change under live instances, and keep the old class until they are done."""
    label: ClassVar[object] = ""
    """For people, may be lazily translated; by default made of the name. Not inherited."""
    description: ClassVar[str] = ""
    """The class's own docstring."""
    abstract: ClassVar[bool] = False
    """Only a base for others: neither registered nor checked for completeness. Not inherited."""
    queue: ClassVar[str] = ""
    retry: ClassVar[RetryPolicy | None] = None
    """For steps without a policy of their own."""
    context_class: type[T] | None = None
    """A dataclass whose annotations give the context's values their types back."""
    steps: ClassVar[Mapping[str, Declaration]] = MappingProxyType({})
    """The declarations by key, in order."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.steps = collect(cls, reserved=dir(Workflow), retry=cls.retry or DEFAULT_RETRY)
        own = vars(cls)
        cls.name, cls.abstract = own.get("name", ""), own.get("abstract", False)
        cls.label = own.get("label", str(cls.name).replace("_", " ").capitalize())
        cls.description = cleandoc(cls.__doc__ or "")
        _check_attributes(cls)
        if not cls.abstract:
            _check_complete(cls)
            registry.register(cls)

    @classmethod
    def step_keys(cls) -> tuple[str, ...]:
        return tuple(cls.steps)


def _check_attributes(workflow: type[Workflow[Any]]) -> None:
    where = workflow.__name__
    check_policy(workflow.retry, where)
    check_version(workflow.version, where)
    check_queue(workflow.queue, where)
    check_context_class(workflow.context_class, where)


def _check_complete(workflow: type[Workflow[Any]]) -> None:
    where = workflow.__name__
    if not workflow.name:
        raise DefinitionError(
            where,
            "it has no name of its own",
            'Add name = "…", which rows will store, or abstract = True for a base.',
        )
    check_slug(workflow.name, "the name", where)
    if not workflow.steps:
        raise DefinitionError(where, "it has no steps", "Declare one with @step, or add abstract = True for a base.")
    for declaration in workflow.steps.values():
        where = f"{workflow.__name__}.{declaration.attribute}"
        if not declaration.is_written(workflow):
            raise DefinitionError(where, "nothing says what it does", "Write its run(ctx), or a method of that name.")
        for target in declaration.goes_to or ():
            if target not in workflow.steps:
                raise DefinitionError(
                    where, f"goes_to names {target!r}, which is no step here", nearest(str(target), workflow.steps)
                )
