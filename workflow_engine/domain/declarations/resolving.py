"""Turn what was written about one step into a Declaration, or say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from inspect import cleandoc, getattr_static
from types import MappingProxyType
from typing import Any

from workflow_engine.domain.declarations.bound import CompensationOptions, Declaration
from workflow_engine.domain.declarations.checks import (
    check_not_async,
    check_options,
    check_policy,
    check_queue,
    check_slug,
)
from workflow_engine.domain.declarations.handlers import Handler, HandlerKind, Role
from workflow_engine.domain.declarations.options import UndoOptions
from workflow_engine.domain.declarations.steps import Activity, Step
from workflow_engine.domain.durations import Duration, declared_timedelta, shown
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.exceptions import DefinitionError


@dataclass(slots=True)
class Draft:
    """A step while the classes of a workflow are walked through, base first."""

    attribute: str
    step: Step[Any]
    handlers: dict[HandlerKind, str] = field(default_factory=dict)
    undo: UndoOptions = field(default_factory=UndoOptions)

    def add_handler(self, role: Role, attribute: str) -> None:
        self.handlers[role.kind] = attribute
        if role.kind == "compensation":
            self.undo = role.undo

    def drop_handler(self, attribute: str) -> None:
        self.handlers = {kind: name for kind, name in self.handlers.items() if name != attribute}


def resolve(draft: Draft, workflow: type, retry: RetryPolicy) -> Declaration:
    """The declaration of the step in that class. Raises DefinitionError."""
    where = f"{workflow.__name__}.{draft.attribute}"
    step = draft.step
    for name in (draft.attribute, *draft.handlers.values()):
        check_not_async(_code(getattr_static(workflow, name)), f"{workflow.__name__}.{name}")
    source = step if isinstance(step, Activity) else Activity
    timing = UndoOptions(timeout=source.timeout, lease=source.lease)
    key = step.key or draft.attribute
    check_slug(key, "the key", where)
    check_policy(step.retry, where)
    check_queue(step.queue, where)
    return Declaration(
        key=key,
        attribute=draft.attribute,
        step=step,
        retry=step.retry or retry,
        queue=step.queue,
        goes_to=_targets(step.goes_to, where),
        timeout=_positive(source.timeout, "timeout", where),
        lease=_positive(source.lease, "lease", where),
        compensation=_compensation(draft, retry, timing, where),
        handlers=MappingProxyType(draft.handlers),
        description=cleandoc(step.__doc__ or ""),
    )


def _code(value: Any) -> Any:
    """The function behind a class attribute."""
    if isinstance(value, Step):
        return value.workflow_method
    return value.function if isinstance(value, Handler) else value


def _targets(goes_to: object, where: str) -> tuple[str, ...] | None:
    if goes_to is None:
        return None
    if isinstance(goes_to, str) or not isinstance(goes_to, Iterable):
        raise DefinitionError(where, f"goes_to is {shown(goes_to)}", 'List the keys of steps: goes_to=("charge",).')
    return tuple(goes_to)


def _positive(value: Duration, what: str, where: str) -> timedelta:
    duration = declared_timedelta(value, what, where)
    if not duration:
        raise DefinitionError(where, f"{what} is 0", "Give it some time.")
    return duration


def _compensation(draft: Draft, retry: RetryPolicy, timing: UndoOptions, where: str) -> CompensationOptions:
    """Undoing takes as long as the step may, unless said otherwise; how often to try is its own matter."""
    undo: UndoOptions = {**timing, **draft.step.undo, **draft.undo}
    where = f"{where} compensation"
    check_options(undo, UndoOptions, where)
    check_policy(undo.get("retry"), where)
    return CompensationOptions(
        retry=undo.get("retry") or retry,
        atomic=bool(undo.get("atomic")),
        timeout=_positive(undo["timeout"], "timeout", where),
        lease=_positive(undo["lease"], "lease", where),
    )
