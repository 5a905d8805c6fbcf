"""Durable workflows for Django: long-running business processes as rows in your own database.

The names below are loaded when first used, so that this imports before Django's apps are ready.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflow_engine import engine
    from workflow_engine.domain.context import Context
    from workflow_engine.domain.declarations import Activity, Step, activity, step
    from workflow_engine.domain.outcomes import Await, Complete, Fail, Finish, Goto, Outcome, Retry, Sleep
    from workflow_engine.domain.received import Signal
    from workflow_engine.domain.retries import RetryPolicy
    from workflow_engine.domain.workflows import Workflow
    from workflow_engine.exceptions import (
        BrokerUnavailableError,
        ConfigurationError,
        DefinitionError,
        DispatchError,
        FinalError,
        HandlerMissingError,
        IdempotencyConflictError,
        IllegalTransitionError,
        InstanceNotFoundError,
        InvalidOutcomeError,
        InvalidStateError,
        LeaseLost,
        NoLiveInstanceError,
        NotSerializableError,
        PostponedError,
        SignalNotAwaitedError,
        StaleWriteError,
        SubjectMissingError,
        TransactionBrokenError,
        UndeclaredGotoError,
        UnhandledSignalsError,
        UnknownOutcomeError,
        UnknownWorkflowError,
        VisitLimitError,
        WorkflowEngineError,
    )

__version__ = "0.1.0"

__all__ = [
    "Activity",
    "Await",
    "BrokerUnavailableError",
    "Complete",
    "ConfigurationError",
    "Context",
    "DefinitionError",
    "DispatchError",
    "Fail",
    "FinalError",
    "Finish",
    "Goto",
    "HandlerMissingError",
    "IdempotencyConflictError",
    "IllegalTransitionError",
    "InstanceNotFoundError",
    "InvalidOutcomeError",
    "InvalidStateError",
    "LeaseLost",
    "NoLiveInstanceError",
    "NotSerializableError",
    "Outcome",
    "PostponedError",
    "Retry",
    "RetryPolicy",
    "Signal",
    "SignalNotAwaitedError",
    "Sleep",
    "StaleWriteError",
    "Step",
    "SubjectMissingError",
    "TransactionBrokenError",
    "UndeclaredGotoError",
    "UnhandledSignalsError",
    "UnknownOutcomeError",
    "UnknownWorkflowError",
    "VisitLimitError",
    "Workflow",
    "WorkflowEngineError",
    "__version__",
    "activity",
    "engine",
    "step",
]

_HOMES = (
    "domain.context",
    "domain.declarations",
    "domain.outcomes",
    "domain.received",
    "domain.retries",
    "domain.workflows",
    "exceptions",
)


def __getattr__(name: str) -> object:
    if name == "engine":
        return import_module("workflow_engine.engine")
    if name in __all__:
        for home in _HOMES:
            found = vars(import_module(f"workflow_engine.{home}")).get(name)
            if found is not None:
                return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
