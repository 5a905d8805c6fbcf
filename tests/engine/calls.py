"""Workflows around one activity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support import TWICE
from workflow_engine import (
    Context,
    RetryPolicy,
    Signal,
    Workflow,
    activity,
    step,
)
from workflow_engine.engine import advancing
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.turns import Mode
from workflow_engine.models import WorkflowInstance

Call = Callable[[Context], Any]


def calling(call: Call, *, retry: RetryPolicy = TWICE, timeout: float = 300, lease: float = 60) -> type[Workflow[Any]]:
    """A workflow that calls `call` as its activity, and then has one more step."""

    class Calls(Workflow):
        name = "calls"

        @activity(retry=retry, timeout=timeout, lease=lease)
        def call(self, ctx: Context) -> Any:
            return call(ctx)

        @call.on_signal
        def answered(self, ctx: Context, signal: Signal) -> Any:
            return {"answer": signal.data}

        @step
        def after(self, ctx: Context) -> None: ...

    return Calls


def claimed(instance: WorkflowInstance) -> Callable[[], Any]:
    """An attempt whose claim is committed and whose handler has not run: what a worker holds in its hands."""
    advanced = run_outermost("default", lambda: advancing.take_turn(instance.pk, "default", Mode(hold=True)))
    assert advanced.outside is not None
    return advanced.outside
