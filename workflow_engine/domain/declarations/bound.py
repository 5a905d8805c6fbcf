"""A step as its workflow class has it, every option resolved, and its methods on one workflow object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations.handlers import METHODS, HandlerKind
from workflow_engine.domain.declarations.steps import Activity, Step
from workflow_engine.domain.received import Signal
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.exceptions import HandlerMissingError


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationOptions:
    """How a compensation runs. `atomic`: inside the transaction that records it."""

    retry: RetryPolicy
    atomic: bool
    timeout: timedelta
    lease: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One step of one workflow class. Each class has its own, so a subclass never changes its base."""

    key: str
    attribute: str
    step: Step[Any]
    retry: RetryPolicy
    queue: str
    goes_to: tuple[str, ...] | None
    timeout: timedelta
    lease: timedelta
    compensation: CompensationOptions
    handlers: Mapping[HandlerKind, str]
    """The names of the workflow's methods that answer for this step."""
    description: str

    @property
    def is_activity(self) -> bool:
        return isinstance(self.step, Activity)

    @property
    def handles_signals(self) -> bool:
        return self.handles("on_signal")

    @property
    def handles_timeout(self) -> bool:
        return self.handles("on_timeout")

    @property
    def compensates(self) -> bool:
        return self.handles("compensation")

    def handles(self, kind: HandlerKind) -> bool:
        method = METHODS[kind]
        return kind in self.handlers or getattr(type(self.step), method) is not getattr(Step, method)

    def is_written(self, workflow: type) -> bool:
        """Whether there is code to run: a method of the workflow, or the `run` of a Step's subclass."""
        return getattr(workflow, self.attribute) is not self.step or self.step.is_written

    def bind(self, workflow: object) -> BoundStep:
        return BoundStep(self, workflow)


@dataclass(frozen=True, slots=True)
class BoundStep:
    """A step's methods, found by name on the workflow object, so that overriding one in a subclass works."""

    declaration: Declaration
    workflow: object

    @property
    def key(self) -> str:
        return self.declaration.key

    @property
    def handles_signals(self) -> bool:
        return self.declaration.handles_signals

    @property
    def handles_timeout(self) -> bool:
        return self.declaration.handles_timeout

    @property
    def compensates(self) -> bool:
        return self.declaration.compensates

    @property
    def compensation(self) -> CompensationOptions:
        return self.declaration.compensation

    def run(self, ctx: Context[Any]) -> Any:
        return getattr(self.workflow, self.declaration.attribute)(ctx)

    def handle_signal(self, ctx: Context[Any], signal: Signal) -> Any:
        return self._handler("on_signal")(ctx, signal)

    def handle_timeout(self, ctx: Context[Any]) -> Any:
        return self._handler("on_timeout")(ctx)

    def compensate(self, ctx: Context[Any], result: Any) -> Any:
        return self._handler("compensation")(ctx, result)

    def _handler(self, kind: HandlerKind) -> Callable[..., Any]:
        name = self.declaration.handlers.get(kind)
        if not self.declaration.handles(kind):
            raise HandlerMissingError(type(self.workflow).__name__, self.key, kind)
        owner, method = (self.workflow, name) if name else (self.declaration.step, METHODS[kind])
        handler: Callable[..., Any] = getattr(owner, method)
        return handler
