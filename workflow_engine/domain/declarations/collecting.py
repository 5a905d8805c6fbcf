"""Collect the steps of a workflow class from all its bases, as Django's forms collect fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from workflow_engine.domain.declarations.bound import Declaration
from workflow_engine.domain.declarations.handlers import roles_of
from workflow_engine.domain.declarations.resolving import Draft, resolve
from workflow_engine.domain.declarations.steps import Step
from workflow_engine.domain.durations import shown
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.exceptions import DefinitionError


def collect(workflow: type, reserved: Collection[str], retry: RetryPolicy) -> Mapping[str, Declaration]:
    """The declarations of the class, by key and in their order. `retry` is for steps without a policy of their own.

    A step declared again keeps its place and loses the handlers of the old one; a method of the same name replaces the
    code and keeps the declaration; None removes it.
    """
    drafts: dict[str, Draft] = {}
    for owner in reversed(workflow.__mro__):
        _place_steps(drafts, owner, workflow)
        _attach_handlers(drafts, owner, workflow)
    declarations: dict[str, Declaration] = {}
    for draft in drafts.values():
        for attribute in (draft.attribute, *draft.handlers.values()):
            if attribute in reserved:
                raise DefinitionError(
                    f"{workflow.__name__}.{attribute}",
                    "every workflow has an attribute of that name",
                    f"Rename the method; a step can keep its key with key={attribute!r}.",
                )
        declaration = resolve(draft, workflow, retry)
        other = declarations.setdefault(declaration.key, declaration)
        if other is not declaration:
            raise DefinitionError(
                f"{workflow.__name__}.{draft.attribute}",
                f"the key {other.key!r} is already taken by the step {other.attribute!r}",
                "Give each step a key of its own.",
            )
    return MappingProxyType(declarations)


def _place_steps(drafts: dict[str, Draft], owner: type, workflow: type) -> None:
    for attribute, value in vars(owner).items():
        if isinstance(value, Step):
            drafts[attribute] = Draft(attribute, value)
        elif value is None:
            drafts.pop(attribute, None)
            for draft in drafts.values():
                draft.drop_handler(attribute)
        elif isinstance(getattr(value, "__wrapped__", None), Step):
            raise DefinitionError(
                f"{workflow.__name__}.{attribute}",
                "another decorator hides that this is a step",
                "Put @step or @activity on top of the others.",
            )
        elif attribute in drafts and roles_of(value):
            raise DefinitionError(
                f"{workflow.__name__}.{attribute}",
                "a handler takes the name of an inherited step",
                "Give it a name of its own.",
            )
        elif attribute in drafts and not callable(value):
            raise DefinitionError(
                f"{workflow.__name__}.{attribute}",
                f"it replaces an inherited step by {shown(value)}",
                "Replace it by a method or a step, or remove it with None.",
            )


def _attach_handlers(drafts: dict[str, Draft], owner: type, workflow: type) -> None:
    taken: dict[tuple[str, str], str] = {}
    for attribute, value in vars(owner).items():
        for role in roles_of(value):
            where = f"{workflow.__name__}.{attribute}"
            names = [name for name in _names_of(role.step, workflow) if name in drafts]
            if not names:
                raise DefinitionError(
                    where,
                    f"it is the {role.kind} of a step that this workflow does not have",
                    "Decorate it with a step declared above it or an inherited one (@Base.charge.on_signal), and give"
                    " it a name of its own.",
                )
            for name in names:
                other = taken.setdefault((name, role.kind), attribute)
                if other != attribute:
                    raise DefinitionError(
                        where,
                        f"the step {name!r} already has {other!r} as its {role.kind}",
                        "Keep one of the two.",
                    )
                drafts[name].add_handler(role, attribute)


def _names_of(step: Step[Any], workflow: type) -> Iterator[str]:
    """The attributes under which the class or one of its bases has that very object."""
    for owner in workflow.__mro__:
        for attribute, value in vars(owner).items():
            if value is step:
                yield attribute
