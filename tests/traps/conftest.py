from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model import invariants
from workflow_engine import clock
from workflow_engine.domain.registry import registry


@pytest.fixture(autouse=True)
def world(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[None]:
    """Real commits, workflows of the test's own; and whatever was done to it, the tables make sense afterwards."""
    marker = request.node.get_closest_marker("django_db")
    aliases = marker.kwargs.get("databases", ["default"]) if marker else ["default"]
    with registry.isolated():
        yield
    clock.reset_shift()
    for using in aliases:
        invariants.assert_hold(invariants.read(using))
