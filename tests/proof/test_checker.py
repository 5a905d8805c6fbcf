"""The checker sees: a clean database has nothing to report, and each corruption is reported by its number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections, transaction
from pytest_django import DjangoDbBlocker

from tests.proof import corruptions_of_deeds, corruptions_of_tables, ledger, tables
from tests.proof.cases import fresh_world
from tests.proof.checker import check
from tests.proof.corrupting import Corruption, World, everything_once

CORRUPTIONS = [*corruptions_of_tables.corruptions, *corruptions_of_deeds.corruptions]


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock(), fresh_world():
        ids = everything_once()
        yield World(ids, tables.read())
        tables.wipe()


@pytest.mark.django_db(transaction=False)
class TestChecker:
    def test_a_clean_database_has_nothing_to_report(self, world: World) -> None:
        assert check(before=world.reading) == []
        assert len(world.reading.instances) == len(world.ids)

    @pytest.mark.parametrize("case", CORRUPTIONS, ids=lambda case: case.corrupt.__name__)
    def test_it_sees(self, world: World, case: Corruption) -> None:
        """Read through the connection that corrupted, so that a rollback mends everything."""
        clean = ledger.read()
        try:
            with transaction.atomic():
                case.corrupt(world)
                found = check(before=world.reading, connection=connections["default"])
                transaction.set_rollback(True)
        finally:
            ledger.replace(clean)
        assert case.invariant in {violation.invariant for violation in found}, found
