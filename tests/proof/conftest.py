from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proof.campaign import Campaign


@pytest.fixture(scope="session")
def campaign() -> Iterator[Campaign]:
    """The figures of this run."""
    campaign = Campaign()
    yield campaign
    campaign.write()
