"""A workflow whose instances wait for each other in the database, if they come at the same time."""

from __future__ import annotations

from django.db.models import F

from tests.proof.deeds import transactional
from tests.proof.interleavings.scheduler import point
from tests.proof.programs import ONCE
from tests.shop.models import Counter
from workflow_engine import Context, Goto, Outcome, Workflow, step
from workflow_engine.domain.registry import registry

COUNTERS = ("left", "right")
ROUNDS = 4

with registry.isolated():

    class Crossing(Workflow):
        """Counts in two rows, in the order that the start names, again and again. Each time there is one attempt: a
        deadlock uses none.
        """

        name = "proof_crossing"
        retry = ONCE

        @step
        def count(self, ctx: Context) -> Outcome | None:
            with transactional(ctx, "body", 1):
                for name in COUNTERS if ctx.input["call"] == "left first" else reversed(COUNTERS):
                    Counter.objects.filter(name=name).update(value=F("value") + 1)
                    point(f"has counted {name}")
                return Goto("count") if ctx.visit < ROUNDS else None
