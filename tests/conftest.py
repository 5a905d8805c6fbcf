from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection, connections
from hypothesis import HealthCheck, settings

from tests.databases import DATABASE_VARIABLE, ENGINE, FIRST_DATABASE, TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.plugin import DjangoDbBlocker

# The examples are the same on every run: a failure in continuous integration is one that a developer can repeat.
# Work on a real database has no useful deadline per example.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("explore", parent=settings.get_profile("default"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is about other databases than this run's."""
    for mark in item.iter_markers("needs"):
        if ENGINE not in mark.args:
            where = "test" if mark.args == ("sqlite",) else "test-services"
            pytest.skip(f"needs {' or '.join(TITLES[name] for name in mark.args)}: make {where}")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None, django_db_blocker: DjangoDbBlocker) -> None:
    """A server that does not answer ends the run, once and in plain words."""
    if ENGINE == "sqlite":
        return
    server = connection.copy()
    server.settings_dict["NAME"] = FIRST_DATABASE[ENGINE]
    try:
        with django_db_blocker.unblock():
            server.ensure_connection()
            server.close()
    except OperationalError as error:
        where = "{USER}@{HOST}:{PORT}".format(**connection.settings_dict)
        told = f"{TITLES[ENGINE]} does not let {where} in: {str(error).strip()}"
        pytest.exit(f"{told}\ntests/databases.py says which variables tell where it is.", returncode=3)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Processes that a test starts under tests.settings open this run's test database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE_VARIABLE, str(connection.settings_dict["NAME"]))
        if ENGINE == "postgresql":
            # Between two tests with real commits Django truncates every table, which takes a second.
            patch.setattr(type(connections["default"].ops), "sql_flush", _delete_from_all)
        yield


def _delete_from_all(operations: Any, style: object, tables: list[str], **_: Any) -> list[str]:
    """All in one transaction, at whose end foreign keys are checked."""
    return [f"DELETE FROM {operations.quote_name(table)}" for table in tables]  # noqa: S608 - names of our own
