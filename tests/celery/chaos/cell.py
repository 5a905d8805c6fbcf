"""A cell of {PostgreSQL, MariaDB} x {Redis, RabbitMQ}: the two servers, and a proxy in front of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

from tests.celery.chaos import environment
from tests.databases import DATABASE_VARIABLE, ENGINE, PREFIX
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.redis import Redis
from tests.servers.server import HOST, Server, private
from tests.traps.proxy import Proxy

DATABASES: dict[str, type[PostgreSQL | MariaDB]] = {"postgresql": PostgreSQL, "mariadb": MariaDB}
BROKERS: dict[str, type[Redis | RabbitMQ]] = {"redis": Redis, "rabbitmq": RabbitMQ}
_NAME = "chaos"


@dataclass(frozen=True)
class Cell:
    """The servers; and the proxies, which the run's processes talk to."""

    name: str
    database: PostgreSQL | MariaDB
    broker: Redis | RabbitMQ
    before_database: Proxy
    before_broker: Proxy

    @property
    def broker_beyond_proxy(self) -> str:
        """The broker's address for the processes."""
        return self.broker.url.replace(f":{self.broker.port}", f":{self.before_broker.port}")


@contextmanager
def cell_of(database: str, broker: str) -> Iterator[Cell]:
    """Running servers, which are gone after the block."""
    with ExitStack() as stack:
        servers = (stack.enter_context(private(kind)) for kind in (DATABASES[database], BROKERS[broker]))
        behind: list[Server] = list(servers)
        proxies = [Proxy((HOST, server.port)) for server in behind]
        for proxy in proxies:
            stack.callback(proxy.close)
        yield Cell(f"{database}-{broker}", *behind, *proxies)  # type: ignore[arg-type]


def settle_in(cell: Cell, seconds: float, seed: int, folder: Path) -> None:
    """Load Django in this process, which talks to the database past the proxy; and put into the environment what the
    run's processes need, which don't.
    """
    cell.database.create(_NAME)
    port = f"{PREFIX}{ENGINE.upper()}_PORT"
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "tests.celery.chaos.project.settings",
        "PYTHONWARNINGS": "ignore",
        DATABASE_VARIABLE: _NAME,
        port: str(cell.database.port),
        environment.BROKER_VARIABLE: cell.broker_beyond_proxy,
        environment.LEDGER_VARIABLE: str(folder / "ledger"),
        environment.SEED_VARIABLE: str(seed),
        environment.SECONDS_VARIABLE: str(seconds),
    }
    django.setup()
    os.environ[port] = str(cell.before_database.port)
