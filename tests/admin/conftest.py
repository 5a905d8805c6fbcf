from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.admin.visiting import VIEWS, started, visitor
from tests.inspection.flows import flows
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowWorker

__all__ = ["flows"]


@pytest.fixture
def superuser() -> Client:
    return visitor("root", is_superuser=True)


@pytest.fixture
def viewer() -> Client:
    """A member of staff who may look at everything."""
    return visitor("vera", *VIEWS)


@pytest.fixture
def rows() -> dict[str, Any]:
    """A row of each model."""
    row = started()
    engine.signal(row, "weather")
    engine.drive(row)
    now = clock.now("default")
    worker = WorkflowWorker.objects.create(kind="worker", host="box", pid=1, started_at=now, seen_at=now)
    return {
        "workflowinstance": row,
        "workflowevent": row.events.get(seq=1),
        "workflowsignal": row.signals.get(),
        "workflowworker": worker,
    }
