"""The workflow that test_clocks.py starts and a process with another clock drives."""

from __future__ import annotations

from datetime import timedelta

from workflow_engine import Await, Context, Sleep, Workflow, activity, step


def define() -> type[Workflow]:
    """Registered where this is called."""

    class Skewed(Workflow):
        name = "skewed"

        @step
        def rest(self, ctx: Context) -> Sleep:
            return Sleep(timedelta(minutes=30))

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("go", timeout=timedelta(minutes=30))

        @activity(lease=60)
        def call(self, ctx: Context) -> None: ...

    return Skewed
