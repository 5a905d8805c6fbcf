from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proof.campaign import Campaign


@pytest.fixture(scope="session")
def whole_campaign() -> Iterator[Campaign]:
    """The figures of this run."""
    campaign = Campaign()
    yield campaign
    campaign.write()


@pytest.fixture
def campaign(whole_campaign: Campaign, request: pytest.FixtureRequest) -> Campaign:
    """The figures of this run, whose part is this test's module."""
    whole_campaign.part = request.module.__name__.rpartition(".test_")[2].replace("_", " ")
    return whole_campaign
