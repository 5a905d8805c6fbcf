from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from workflow_engine import dispatch
from workflow_engine.domain.registry import registry


@pytest.fixture(scope="module")
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_setup: None
) -> Iterator[object]:
    """Real processes on the broker that the tests are given: two workers with a queue each, and a tick."""
    from tests.celery.live.fleet import fleet_at

    with fleet_at(request.param, tmp_path_factory.mktemp(request.param)) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
def web(settings: Settings) -> Iterator[None]:
    """This process is the web side: it sends messages, and knows the workflows."""
    from tests.celery.brokers import end_publisher
    from tests.celery.live import cells
    from tests.celery.live.project import workflows

    settings.WORKFLOW_ENGINE = cells.ENGINE_SETTINGS
    for workflow in workflows.ALL:
        registry.register(workflow)
    dispatch._load.cache_clear()
    yield
    end_publisher(dispatch.dispatcher())
    dispatch._load.cache_clear()
