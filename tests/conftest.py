from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings

from tests.databases import DATABASE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

# The examples are the same on every run: a failure in continuous integration is one that a developer can repeat.
# Work on a real database has no useful deadline per example.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("explore", parent=settings.get_profile("default"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Processes that a test starts under tests.settings open this run's test database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE_VARIABLE, str(connection.settings_dict["NAME"]))
        yield
