"""A workflow that fails, and can be mended."""

from __future__ import annotations

from tests.shop.workflows import leave_effect
from tests.support import ONCE
from workflow_engine import Context, Workflow, step


class Broken:
    """A workflow that fails until it is mended."""

    def __init__(self) -> None:
        self.broken = True
        self.keys: list[str] = []
        test = self

        class BrokenWork(Workflow):
            name = "broken"

            @step
            def before(self, ctx: Context) -> None:
                leave_effect(ctx)

            @step(retry=ONCE)
            def work(self, ctx: Context) -> None:
                test.keys.append(ctx.idempotency_key)
                if test.broken:
                    raise ValueError("broken")
                leave_effect(ctx)

        self.workflow = BrokenWork
