"""The demo on Celery, PostgreSQL and Redis: the real command, on a database and a queue of the test's own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("celery", reason="needs Celery: pip install -e '.[services]'")
pytest.importorskip("psycopg", reason="needs the driver of PostgreSQL: pip install -e '.[services]'")

from tests.celery.live.cells import BROKERS
from tests.databases import server

ROOT = Path(__file__).resolve().parents[2]
NAME = f"workflow_engine_demo_{os.getpid()}"
POSTGRESQL = server("postgresql")


@pytest.fixture
def database() -> Iterator[str]:
    """Its URL. The demo creates it, the test drops it."""
    import psycopg

    postgresql = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/".format(**POSTGRESQL)
    yield postgresql + NAME
    with psycopg.connect(f"{postgresql}postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME}")


def start(folder: Path, database: str, broker: str, *options: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WORKFLOW_ENGINE_TEST")}
    return subprocess.Popen(
        [sys.executable, "manage.py", "demo", *options],
        cwd=ROOT,
        env={
            **environment,
            "DJANGO_SETTINGS_MODULE": "example_project.settings_celery",
            "SHOP_DATABASE_URL": database,
            "SHOP_BROKER_URL": broker,
            "SHOP_OUTSIDE_LEDGER": str(folder / "outside.sqlite3"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes() -> set[str]:
    """Those that were told of the test's database. Celery's have sessions of their own."""
    told = f"/{NAME}\0".encode()
    return {path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if told in _read(path)}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def messages_left() -> Any:
    import redis

    with redis.Redis.from_url(BROKERS["redis"]) as client:
        return client.keys(f"{NAME}:{NAME}*")


@pytest.mark.services
def test_the_demo_on_celery_runs_adds_up_and_can_be_run_again(tmp_path: Path, database: str) -> None:
    for number in range(2):
        with start(tmp_path, database, BROKERS["redis"], "--count", "12") as demo:
            stdout, stderr = demo.communicate(timeout=300)
        assert (demo.returncode, stderr) == (0, "")
        assert f"Database   {NAME}, on PostgreSQL at {POSTGRESQL['HOST']}:{POSTGRESQL['PORT']}; the broker is" in stdout
        assert ("Emptied    12 orders" in stdout) == (number == 1)
        findings = re.findall(r"^ +(ok|WRONG) +(\w+)", stdout, re.MULTILINE)
        assert findings == [
            ("ok", name) for name in ("stock", "totals", "money", "parcels", "provider", "carrier", "engine")
        ]
        assert re.search(
            r"1  worker killed \(SIGKILL, process \d+\) after the provider had taken the money for\n"
            r" +S-1011 and before anybody here knew; another one asked again after [\d.]+ s, and it is shipped\n",
            stdout,
        )
        assert "export DJANGO_SETTINGS_MODULE=example_project.settings_celery\n" in stdout
        assert processes() == set()
        assert messages_left() == []


@pytest.mark.services
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_on_celery_that_is_stopped_leaves_no_process_behind(
    tmp_path: Path, database: str, number: signal.Signals
) -> None:
    with start(tmp_path, database, BROKERS["redis"], "--count", "12") as demo:
        assert demo.stdout is not None
        next(line for line in demo.stdout if line.startswith("Starting"))
        demo.send_signal(number)
        _, stderr = demo.communicate(timeout=300)
    assert stderr == "CommandError: Stopped half-way. Run it again whenever you like: it starts afresh.\n"
    assert processes() == set()
    assert messages_left() == []


@pytest.mark.parametrize(
    ("missing", "variable", "url"),
    [
        ("PostgreSQL", "SHOP_DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:{}/demo"),
        ("Redis", "SHOP_BROKER_URL", "redis://:secret@127.0.0.1:{}/0"),
        ("RabbitMQ", "SHOP_BROKER_URL", "amqp://guest:secret@127.0.0.1:{}//"),
    ],
)
def test_a_server_that_is_not_there_is_one_error_that_says_which_and_where_to_say_where_one_is(
    tmp_path: Path, missing: str, variable: str, url: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    urls = {"SHOP_DATABASE_URL": "postgresql://127.0.0.1/unused", "SHOP_BROKER_URL": "memory://"}
    urls[variable] = url.format(port)
    with start(tmp_path, *urls.values()) as demo:
        stdout, stderr = demo.communicate(timeout=300)
    assert (demo.returncode, stdout) == (1, "")
    assert re.fullmatch(
        rf"CommandError: {missing} at 127\.0\.0\.1:{port} can't be used: .*refused.*\n"
        rf"Start it, or say in {variable} where one is: example_project/settings_celery\.py has examples\.\n",
        stderr,
    )
    assert "secret" not in stderr
