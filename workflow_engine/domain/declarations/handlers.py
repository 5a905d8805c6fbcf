"""Methods of a workflow that answer for a step: on_signal, on_timeout, compensation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, Literal

from workflow_engine.domain.declarations.options import UndoOptions

if TYPE_CHECKING:
    from workflow_engine.domain.declarations.steps import Step

HandlerKind = Literal["on_signal", "on_timeout", "compensation"]

METHODS: Mapping[HandlerKind, str] = {
    "on_signal": "handle_signal",
    "on_timeout": "handle_timeout",
    "compensation": "compensate",
}
"""The method of a Step subclass that answers for it."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a method does for which step; the class that has the method finds out which key that is."""

    step: Step[Any]
    kind: HandlerKind
    undo: UndoOptions


class Handler:
    """Marks a method with its roles. On a workflow object it is the plain method, so it can be called and overridden.

    Declarations stay as they are: a subclass may give an inherited step a handler that its base does not know of.
    """

    def __init__(self, function: Callable[..., Any], role: Role) -> None:
        update_wrapper(self, function)
        self.function: Callable[..., Any] = function.function if isinstance(function, Handler) else function
        self.workflow_roles = (*roles_of(function), role)

    def __get__(self, workflow: object, owner: type | None = None) -> Callable[..., Any]:
        return self if workflow is None else MethodType(self.function, workflow)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def roles_of(value: object) -> tuple[Role, ...]:
    """The roles of a class attribute, also below decorators that keep an attribute's `__dict__`, as wraps() does."""
    roles = getattr(value, "workflow_roles", ())
    return roles if isinstance(roles, tuple) else ()
