"""Every error of the package. Each takes data, owns its message, and says the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class WorkflowEngineError(Exception):
    """Base of every error this package raises."""


class FinalError(WorkflowEngineError):
    """Raised inside a step: trying the same thing again can't help, so no retry is spent on it."""


# --- definitions ------------------------------------------------------------------------------


class DefinitionError(WorkflowEngineError):
    """A workflow class is wrong. Raised while it is defined, so a deploy fails and not an order."""

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        self.where, self.problem, self.remedy = where, problem, remedy
        super().__init__(f"{where}: {problem}. {remedy}")


class UnknownWorkflowError(WorkflowEngineError):
    """No workflow of that name (or name and version) is registered in this process."""

    def __init__(self, name: str, known: Iterable[str], version: int | None = None) -> None:
        self.name, self.version, self.known = name, version, tuple(known)
        asked = f"{name!r}" if version is None else f"{name!r} version {version}"
        super().__init__(
            f"No workflow {asked} is registered. {nearest(name, self.known)} Workflows are found in the"
            " 'workflows' module of installed apps."
        )


class ConfigurationError(WorkflowEngineError):
    """`WORKFLOW_ENGINE` has a key that does not exist."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        self.key, self.known = key, tuple(known)
        super().__init__(f"WORKFLOW_ENGINE has no setting {key!r}. {nearest(key, self.known)}")


# --- what a step returns ----------------------------------------------------------------------


class InvalidOutcomeError(FinalError):
    """An outcome was built from values it can't have."""


class UnknownOutcomeError(FinalError):
    """A handler returned something that is not an outcome. The message lists what is accepted."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(
            f"The handler returned {_shown(value)}, which is not an outcome. Return None or a dict (completes the"
            " step, merging the dict into the context), or one of Complete, Await, Sleep, Goto, Finish, Retry, Fail."
        )


class UndeclaredGotoError(FinalError):
    """A Goto names a step that its workflow does not have, or that `goes_to` does not list."""

    def __init__(self, step: str, target: str, allowed: Iterable[str]) -> None:
        self.step, self.target, self.allowed = step, target, tuple(allowed)
        super().__init__(
            f"Step {step!r} returned Goto({target!r}), which is not among the steps it may go to:"
            f" {', '.join(self.allowed) or 'none'}."
        )


class UnhandledSignalsError(FinalError):
    """A step awaits several signals but has no `on_signal` handler to tell them apart."""

    def __init__(self, step: str, names: Iterable[str]) -> None:
        self.step, self.names = step, tuple(names)
        super().__init__(
            f"Step {step!r} awaits {', '.join(self.names)} but has no on_signal handler. Declare one with"
            f" @{step}.on_signal: with several names the engine can't know what each means."
        )


class HandlerMissingError(FinalError):
    """What is in flight needs a handler that its step no longer declares."""

    def __init__(self, workflow: str, step: str, handler: str) -> None:
        self.workflow, self.step, self.handler = workflow, step, handler
        super().__init__(
            f"{workflow} no longer declares @{step}.{handler}, which this instance needs. Deploy code that has it, then"
            " retry the instance."
        )


class VisitLimitError(FinalError):
    """Too many steps were entered without the instance ever parking: an endless loop."""

    def __init__(self, limit: int, step: str) -> None:
        self.limit, self.step = limit, step
        super().__init__(
            f"{limit} steps were entered without the workflow ever waiting, last {step!r}: this looks like an endless"
            " Goto loop. Let the loop Sleep or Await, or raise WORKFLOW_ENGINE['MAX_VISITS_WITHOUT_PARKING']."
        )


class NotSerializableError(FinalError):
    """A value can't be stored as JSON. `path` names the key, `problem` what is wrong with it."""

    def __init__(self, what: str, path: str, problem: str) -> None:
        self.what, self.path, self.problem = what, path, problem
        super().__init__(f"{what}{f' at {path}' if path else ''}: {problem}")


class SubjectMissingError(WorkflowEngineError):
    """The object this instance is about has been deleted, or its model is not installed."""

    def __init__(self, subject_type: str, subject_id: str) -> None:
        self.subject_type, self.subject_id = subject_type, subject_id
        super().__init__(
            f"The subject {subject_type}:{subject_id} does not exist (any more). Check `ctx.subject_ref`, or keep the"
            " row while its workflow is live."
        )


# --- verbs ------------------------------------------------------------------------------------


class InstanceNotFoundError(WorkflowEngineError):
    """There is no instance of that id."""

    def __init__(self, instance_id: object, using: str) -> None:
        self.instance_id, self.using = instance_id, using
        super().__init__(f"No workflow instance {str(instance_id)!r} in database {using!r}.")


class NoLiveInstanceError(WorkflowEngineError):
    """No live instance has that subject, so a signal to it would be lost."""

    def __init__(self, subject_type: str, subject_id: str, signal: str) -> None:
        self.subject_type, self.subject_id, self.signal = subject_type, subject_id, signal
        super().__init__(
            f"No live workflow instance for {subject_type}:{subject_id}, so the signal {signal!r} was not stored."
            " Answer the sender with an error so that it tries again, or start the workflow first."
        )


class InvalidStateError(WorkflowEngineError):
    """The instance is in a status in which the request makes no sense."""

    def __init__(self, instance_id: object, status: str, request: str, remedy: str) -> None:
        self.instance_id, self.status, self.request = instance_id, status, request
        super().__init__(f"Can't {request} workflow instance {instance_id}: it is {status}. {remedy}")


class SignalNotAwaitedError(WorkflowEngineError):
    """Strict mode (`SIGNALS_BUFFER_EARLY=False`): the instance does not await that signal now."""

    def __init__(self, instance_id: object, name: str, awaited: Iterable[str]) -> None:
        self.instance_id, self.name, self.awaited = instance_id, name, tuple(awaited)
        super().__init__(
            f"Workflow instance {instance_id} does not await {name!r} (it awaits"
            f" {', '.join(self.awaited) or 'nothing'}) and WORKFLOW_ENGINE['SIGNALS_BUFFER_EARLY'] is False."
            " Send it once it is awaited."
        )


class IdempotencyConflictError(WorkflowEngineError):
    """The idempotency key was used before, for something else. `.instance` is what it belongs to."""

    def __init__(self, key: str, instance: Any, difference: str) -> None:
        self.key, self.instance = key, instance
        super().__init__(
            f"The idempotency key {key!r} already belongs to workflow instance {instance.pk}, with {difference}."
            " Use the same values to get that instance, or another key for another one."
        )


class IllegalTransitionError(WorkflowEngineError):
    """A status may not follow another. A bug in the engine, never in a workflow."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        super().__init__(f"An instance can't go from {old!s} to {new!s}. Please report this as a bug.")


class PostponedError(WorkflowEngineError):
    """A Goto leads to a step that this code has but the instance's snapshot has not: other code must run it."""

    def __init__(self, step: str, target: str) -> None:
        self.step, self.target = step, target
        super().__init__(
            f"Step {step!r} goes to {target!r}, which the instance's step sequence does not have. It is left to a"
            " worker that has the version it started with."
        )


# --- concurrency ------------------------------------------------------------------------------


class StaleWriteError(WorkflowEngineError):
    """The row changed under a lock that should have held: nothing of this transaction is kept."""

    def __init__(self, instance_id: object, version: int) -> None:
        self.instance_id, self.version = instance_id, version
        super().__init__(f"Workflow instance {instance_id} is no longer at version {version}; nothing was written.")


class DispatchError(WorkflowEngineError):
    """An instance could not be handed to the broker. Nothing is lost: tick hands it out again."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(f"The message could not be sent: {str(error) or type(error).__name__}.")


class BrokerUnavailableError(DispatchError):
    """The broker is the problem, not the message: the next one would not get through either."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.args = (f"The broker did not take the message ({error}). Is it running, and is the URL right?",)


class LeaseLost(WorkflowEngineError):  # noqa: N818 - a fact about the world that handlers catch, not a mistake
    """The activity's lease ran out or was taken over: stop, nothing more can be recorded."""

    def __init__(self, instance_id: object, step: str, reason: str) -> None:
        self.instance_id, self.step, self.reason = instance_id, step, reason
        super().__init__(f"The lease of {step!r} on workflow instance {instance_id} is lost: {reason}.")


class TransactionBrokenError(WorkflowEngineError):
    """A step harmed the transaction it runs in, so nothing it wrote can be kept."""

    def __init__(self, step: str, harm: str, remedy: str | None = None) -> None:
        self.step, self.harm = step, harm
        remedy = remedy or (
            "A @step runs inside the engine's transaction: let database errors propagate or catch them around an"
            " atomic() block of your own, and never close the connection."
        )
        super().__init__(f"Step {step!r} {harm}, so none of its writes can be kept. {remedy}")


def nearest(wrong: str, known: Iterable[str]) -> str:
    """'Did you mean ...?' when something known is close to `wrong`, else the list of what is known."""
    known = tuple(known)
    matches = get_close_matches(wrong, known, n=1)
    if matches:
        return f"Did you mean {matches[0]!r}?"
    return f"Known: {', '.join(sorted(known))}." if known else "None is known."


def _shown(value: object) -> str:
    """The type, and the value itself only where its repr is short, cheap and free of side effects."""
    kind = type(value).__name__
    return f"{value!r} ({kind})" if isinstance(value, bool | int | float) else f"a {kind}"
