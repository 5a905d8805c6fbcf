from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model import invariants
from tests.support import assert_history_is_the_row
from workflow_engine import clock
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowInstance


@pytest.fixture(autouse=True)
def world(db: None) -> Iterator[None]:
    """Each test has workflows and a time of its own; and whatever it did, the tables must make sense afterwards."""
    with registry.isolated():
        yield
        tables = invariants.read()
        rows = list(WorkflowInstance.objects.all())
    clock.reset_shift()
    invariants.assert_hold(tables)
    for row in rows:
        assert_history_is_the_row(row)
