"""Step and Activity: base classes to reuse, and the decorators which build them from methods of a workflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, Unpack, cast, overload

from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations.checks import check_not_async, check_options
from workflow_engine.domain.declarations.handlers import METHODS, Handler, HandlerKind, Role
from workflow_engine.domain.declarations.options import ActivityOptions, StepOptions, UndoOptions
from workflow_engine.domain.durations import Duration
from workflow_engine.domain.outcomes import Returned
from workflow_engine.domain.received import Signal
from workflow_engine.domain.retries import RetryPolicy

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", bound=Returned, covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

Runs = Callable[[Any, Context[Any]], R_co]
OnSignal = TypeVar("OnSignal", bound=Callable[[Any, Context[Any], Signal], Returned])
OnTimeout = TypeVar("OnTimeout", bound=Callable[[Any, Context[Any]], Returned])
Undoes = TypeVar("Undoes", bound=Callable[[Any, Context[Any], Any], None])
F = TypeVar("F", bound=Callable[..., Any])


class Step(Generic[R_co]):
    """One step of a workflow, run inside the engine's transaction: its ORM writes commit with its progress, once.

    Subclass it to reuse a step: write `run`, and `handle_signal`, `handle_timeout`, `compensate` where needed. Options
    are class attributes that the constructor overrides. A declaration is never changed once it is built.
    """

    known_options: ClassVar[type] = StepOptions

    key: str = ""
    retry: RetryPolicy | None = None
    queue: str = ""
    goes_to: Sequence[str] | None = None
    undo: UndoOptions = UndoOptions()
    workflow_method: Runs[R_co] | None = None
    """The workflow's own function, where a decorator built this step."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("run", *METHODS.values()):
            check_not_async(vars(cls).get(name), f"{cls.__name__}.{name}")

    def __init__(self, **options: Unpack[StepOptions]) -> None:
        check_options(options, self.known_options, type(self).__name__)
        vars(self).update(options)

    @overload
    def __get__(self, workflow: None, owner: type) -> Self: ...
    @overload
    def __get__(self, workflow: object, owner: type) -> Callable[[Context[Any]], R_co]: ...
    def __get__(self, workflow: object | None, owner: type) -> Self | Callable[[Context[Any]], R_co]:
        """On a workflow object: the plain function of the context that this step is."""
        if workflow is None:
            return self
        return self.run if self.workflow_method is None else MethodType(self.workflow_method, workflow)

    def run(self, ctx: Context[Any]) -> R_co:
        """Do the step's work."""
        raise NotImplementedError

    @property
    def is_written(self) -> bool:
        """Whether there is something to run."""
        return self.workflow_method is not None or type(self).run is not Step.run

    def handle_signal(self, ctx: Context[Any], signal: Signal) -> Returned:
        """Answer an awaited signal. Without it a signal completes the step and its data is merged."""
        raise NotImplementedError

    def handle_timeout(self, ctx: Context[Any]) -> Returned:
        """Answer that no awaited signal came in time. Without it the step fails."""
        raise NotImplementedError

    def compensate(self, ctx: Context[Any], result: Any) -> None:
        """Undo the step; `result` is None when it is not known whether an attempt succeeded. May run twice."""
        raise NotImplementedError

    def on_signal(self, function: OnSignal) -> OnSignal:
        """Decorate the workflow's method that answers the signals this step awaits."""
        return self._handled_by(function, "on_signal")

    def on_timeout(self, function: OnTimeout) -> OnTimeout:
        """Decorate the workflow's method that answers when this step's await timed out."""
        return self._handled_by(function, "on_timeout")

    @overload
    def compensation(self, function: Undoes) -> Undoes: ...
    @overload
    def compensation(self, **options: Unpack[UndoOptions]) -> Callable[[Undoes], Undoes]: ...
    def compensation(
        self, function: Undoes | None = None, **options: Unpack[UndoOptions]
    ) -> Undoes | Callable[[Undoes], Undoes]:
        """Decorate the workflow's method that undoes this step. It may run more than once, unless `atomic`."""
        check_options(options, UndoOptions, "compensation")

        def decorate(function: Undoes) -> Undoes:
            return self._handled_by(function, "compensation", options)

        return decorate if function is None else decorate(function)

    def _handled_by(self, function: F, kind: HandlerKind, undo: UndoOptions | None = None) -> F:
        return cast("F", Handler(function, Role(self, kind, undo or UndoOptions())))


class Activity(Step[R_co]):
    """A step for what leaves the database: HTTP, mail, files. It runs outside any transaction, under a lease.

    It may run more than once, so it hands `ctx.idempotency_key` to the other side. Durations are seconds or timedelta.
    """

    known_options = ActivityOptions

    timeout: Duration = 300
    lease: Duration = 60

    def __init__(self, **options: Unpack[ActivityOptions]) -> None:
        super().__init__(**cast("StepOptions", options))


@overload
def step(function: Runs[R_co], /) -> Step[R_co]: ...
@overload
def step(**options: Unpack[StepOptions]) -> Callable[[Runs[R_co]], Step[R_co]]: ...
def step(
    function: Runs[R_co] | None = None, /, **options: Unpack[StepOptions]
) -> Step[R_co] | Callable[[Runs[R_co]], Step[R_co]]:
    """Make a method of a workflow a step. Bare, or with the options of Step."""
    check_options(options, StepOptions, "@step")

    def declare(function: Runs[R_co]) -> Step[R_co]:
        return _with_method(Step(**options), function)

    return declare if function is None else declare(function)


@overload
def activity(function: Runs[R_co], /) -> Activity[R_co]: ...
@overload
def activity(**options: Unpack[ActivityOptions]) -> Callable[[Runs[R_co]], Activity[R_co]]: ...
def activity(
    function: Runs[R_co] | None = None, /, **options: Unpack[ActivityOptions]
) -> Activity[R_co] | Callable[[Runs[R_co]], Activity[R_co]]:
    """Make a method of a workflow an activity. Bare, or with the options of Activity."""
    check_options(options, ActivityOptions, "@activity")

    def declare(function: Runs[R_co]) -> Activity[R_co]:
        return _with_method(Activity(**options), function)

    return declare if function is None else declare(function)


Built = TypeVar("Built", bound=Step[Any])


def _with_method(declared: Built, function: Runs[Any]) -> Built:
    declared.workflow_method = function
    declared.__doc__ = function.__doc__
    return declared
