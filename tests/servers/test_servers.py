"""Private servers start, are killed, come again with what they had committed, and leave nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers import processes
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.redis import Redis
from tests.servers.server import HOST, Server, ServerMissingError, private, program
from tests.traps.background import ROOT, eventually, line_from

DATABASES: list[type[Server]] = [PostgreSQL, MariaDB]
BROKERS: list[type[Server]] = [Redis, RabbitMQ]


def connect(server: Server) -> Any:
    """Through the driver, as Django does."""
    if isinstance(server, PostgreSQL):
        import psycopg

        return psycopg.connect(host=HOST, port=server.port, user="postgres", dbname="postgres")
    import MySQLdb

    return MySQLdb.connect(host=HOST, port=server.port, user="root", database="mysql")


def execute(server: Server, *statements: str) -> list[Any]:
    """The rows of the last one."""
    with closing(connect(server)) as connection:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        rows = list(cursor.fetchall()) if cursor.description else []
        connection.commit()
        return rows


def listens(server: Server) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, server.port)) == 0


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with private(request.param) as server:
        yield server


@pytest.mark.services
@pytest.mark.parametrize("server", DATABASES, indirect=True, ids=lambda kind: kind.title)
def test_a_database_that_is_killed_has_all_that_was_committed(server: Server) -> None:
    execute(server, "CREATE TABLE kept (number integer)", "INSERT INTO kept VALUES (7)")
    with closing(connect(server)) as open_one:
        open_one.cursor().execute("INSERT INTO kept VALUES (8)")
        server.kill()
    assert not listens(server)
    server.start()
    assert execute(server, "SELECT number FROM kept") == [(7,)]
    server.restart()
    assert execute(server, "SELECT number FROM kept") == [(7,)]


@pytest.mark.services
@pytest.mark.parametrize("server", BROKERS, indirect=True, ids=lambda kind: kind.title)
def test_a_broker_can_be_killed_and_stopped_and_started_again(server: Server) -> None:
    for end in (server.kill, server.stop):
        end()
        assert not listens(server)
        assert not server.is_running()
        server.start()
        server.ask()


@pytest.mark.services
@pytest.mark.parametrize("kind", [*DATABASES, *BROKERS], ids=lambda kind: kind.title)
def test_nothing_is_left_of_a_server_after_an_error(kind: type[Server]) -> None:
    with pytest.raises(RuntimeError, match="in the middle"), private(kind) as server:  # noqa: PT012
        assert server._process is not None
        family = {server._process.pid, *processes.children(server._process.pid)}
        raise RuntimeError("in the middle")
    assert not server.folder.exists()
    assert not listens(server)
    assert [pid for pid in family if processes.lives(pid)] == []


_STARTER = """
from tests.servers.redis import Redis
from tests.servers.server import private

with private(Redis) as server:
    print(server._process.pid, flush=True)
    input()
"""


@pytest.mark.services
@pytest.mark.skipif(sys.platform != "linux", reason="another system does not tell a process that its parent has ended")
def test_a_server_does_not_outlive_a_process_that_is_killed(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-c", _STARTER], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        pid = int(line_from(starter))
        assert processes.lives(pid)
        starter.kill()
    eventually(lambda: not processes.lives(pid))


def test_a_missing_server_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerMissingError) as missing:
        program(Redis, "redis-server")
    assert str(missing.value) == (
        "Redis is not installed (redis-server is missing): on Debian and Ubuntu, sudo apt install redis-server"
    )
