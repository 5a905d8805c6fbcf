"""Workflows whose activity and undo stop in the middle, so that others can go on while they believe in their leases."""

from __future__ import annotations

from typing import Any

from tests.proof.deeds import Run, leased, transactional
from tests.proof.interleavings.scheduler import point
from tests.proof.programs import LEASE, SIX
from workflow_engine import Context, Fail, Workflow, activity, step
from workflow_engine.domain.registry import registry


def _dawdle(run: Run) -> None:
    """So many stops that another one probably has its turn; a heartbeat is sent in only some of the attempts."""
    for number in range(4):
        point(f"{run.facts['kind']}, attempt {run.ctx.attempt}, in the middle: {number}")
    if run.ctx.attempt % 2 == 0:
        run.beat()


with registry.isolated():

    class Dawdling(Workflow):
        """One slow activity."""

        name = "proof_dawdling"
        retry = SIX

        @activity(lease=LEASE)
        def dawdle(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6) as run:
                _dawdle(run)
                return {"nonce": run.nonce}

    class DawdlingBack(Workflow):
        """One slow activity whose undo is slow, and a step that fails for good."""

        name = "proof_dawdling_back"
        retry = SIX

        @activity(lease=LEASE)
        def dawdle(self, ctx: Context) -> dict[str, Any]:
            with leased(ctx, "activity", 6, undoable=True) as run:
                _dawdle(run)
                return {"nonce": run.nonce}

        @dawdle.compensation(retry=SIX, lease=LEASE)
        def dawdle_back(self, ctx: Context, result: Any) -> None:
            with leased(ctx, "undo", 6) as run:
                _dawdle(run)

        @step
        def fail(self, ctx: Context) -> Fail:
            with transactional(ctx, "body", 6):
                return Fail("for good")
