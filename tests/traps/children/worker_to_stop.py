"""A worker whose step says when it is inside, and goes on when it is told to."""

from __future__ import annotations

import django
from django.conf import settings

django.setup()

from tests.shop.models import Counter  # noqa: E402 - models can be imported now
from workflow_engine import Context, Workflow, step  # noqa: E402
from workflow_engine.worker import Worker  # noqa: E402


class Shipping(Workflow):
    name = "shipping"

    @step
    def pack(self, ctx: Context) -> None:
        Counter.objects.create(name="by the stopped process")
        print("inside", flush=True)
        input()
        Counter.objects.create(name="by the resumed process")


settings.WORKFLOW_ENGINE = {"IDLE_IN_TRANSACTION": 1}
Worker(report=lambda instance_id, driven: print(f"driven: {driven.answer}", flush=True)).run(burst=True)
