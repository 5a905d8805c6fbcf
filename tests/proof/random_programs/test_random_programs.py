"""Workflows that chance made, under a nemesis, count what their plans say, and no invariant breaks.

A failure prints its seed: `make chaos-programs SEEDS=7:8` makes the same programs again. The blows fall where they
fall; what they hit is told by the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from tests.databases import ENGINE, FIRST_DATABASE
from tests.proof.campaign import SEEDS_VARIABLE, Campaign, seeds
from tests.proof.random_programs.plans import make
from tests.proof.random_programs.running import Outcome, run
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import HOST, Server, private
from tests.traps import needs
from tests.traps.background import connection_settings

pytestmark = pytest.mark.django_db(transaction=True)


LONG = SEEDS_VARIABLE in os.environ
SIZE: dict[str, Any] = {"seconds": 8, "programs": 4, "instances": 3} if LONG else {"seconds": 3}

KINDS: Mapping[str, type[Server]] = {"postgresql": PostgreSQL, "mysql": MariaDB}


@pytest.mark.parametrize("seed", seeds(usually=1))
def test_random_programs_count_as_planned_whatever_befalls_their_workers(seed: int, campaign: Campaign) -> None:
    note(run(seed, **SIZE), seed, campaign)


@needs.server
@pytest.mark.parametrize("seed", seeds(usually=1))
def test_random_programs_count_as_planned_although_the_database_server_is_killed(seed: int, campaign: Campaign) -> None:
    with private(KINDS[ENGINE]) as server, database_on(server):
        note(run(seed, **{**SIZE, "seconds": 8}, server=server), seed, campaign)


def note(outcome: Outcome, seed: int, campaign: Campaign) -> None:
    """Count it in, and look whether all is well."""
    campaign.tries(seed)
    campaign.note(outcome.case)
    campaign.faults.update(outcome.faults)
    assert outcome.complaints == [], f"{SEEDS_VARIABLE}={seed}:{seed + 1}, {dict(outcome.faults)}"
    assert sum(outcome.faults.values())


@contextmanager
def database_on(server: Server) -> Iterator[None]:
    """Within the block the default database is a new one on that server."""
    there = {"HOST": HOST, "PORT": str(server.port), "USER": {"postgresql": "postgres"}.get(ENGINE, "root")}
    with connection_settings(**there, PASSWORD="", NAME=FIRST_DATABASE[ENGINE]), connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE proof")
    # The other tests are in haste, and would lose what was committed a moment before the kill.
    careful = {"options": "-c synchronous_commit=on"} if ENGINE == "postgresql" else {}
    with connection_settings(**there, PASSWORD="", NAME="proof", OPTIONS=careful):
        call_command("migrate", run_syncdb=True, verbosity=0)
        yield


def test_plans_differ_and_are_the_same_for_the_same_seed() -> None:
    plans = [make("some", Random(seed)) for seed in (1, 1, 2)]  # noqa: S311 - no secret
    assert plans[0] == plans[1] != plans[2]
