from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from tests.celery import recording
from tests.model import invariants
from workflow_engine import clock
from workflow_engine.domain.registry import registry


@pytest.fixture(autouse=True)
def world(transactional_db: None) -> Iterator[None]:
    """Real commits, workflows of the test's own; and whatever was done to it, the tables make sense afterwards."""
    with registry.isolated():
        yield
    clock.reset_shift()
    invariants.assert_hold(invariants.read("default"))


@pytest.fixture
def sent(settings: Settings) -> Iterator[list[recording.Sent]]:
    """What the engine sends to a broker that is a list."""
    settings.WORKFLOW_ENGINE = {"DISPATCHER": recording.PATH}
    recording.sent.clear()
    yield recording.sent
    recording.sent.clear()
