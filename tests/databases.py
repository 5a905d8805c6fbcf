"""Which database the tests run on, as the environment says: SQLite unless WORKFLOW_ENGINE_TEST_ENGINE names a server.

WORKFLOW_ENGINE_TEST_ENGINE is sqlite, postgresql or mysql (MariaDB too). WORKFLOW_ENGINE_TEST_POSTGRESQL_HOST, _PORT,
_USER and _PASSWORD, and the same with MYSQL, say where a server is; without them it is on this machine, with the rights
that a developer's own gives: PostgreSQL trusts `postgres`, MariaDB has a `root` without a password.

Each run has databases of its own, named after its process, so that two runs don't meet; they are dropped at its end. A
process that a test starts opens the run's databases: conftest.py puts their name into the environment.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

PREFIX = "WORKFLOW_ENGINE_TEST_"
ENGINE_VARIABLE = f"{PREFIX}ENGINE"
DATABASE_VARIABLE = f"{PREFIX}DATABASE"

ENGINE = os.environ.get(ENGINE_VARIABLE) or "sqlite"
"""The vendor, as Django's connections name it."""

FIRST_DATABASE = {"postgresql": "postgres", "mysql": ""}
"""Of a server: one that is always there, to connect to before there is another one."""

TITLES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MariaDB"}
_SERVERS = {
    "postgresql": {"HOST": "127.0.0.1", "PORT": "5432", "USER": "postgres", "PASSWORD": ""},
    "mysql": {"HOST": "127.0.0.1", "PORT": "3306", "USER": "root", "PASSWORD": ""},
}
# A test database need not outlive a power failure.
_HASTE = {"postgresql": {"options": "-c synchronous_commit=off"}}


def database(name: str = "") -> dict[str, Any]:
    """An entry of DATABASES.

    Args:
        name: tells a second database of a run from the first.

    Raises:
        ValueError: the environment names a database that the tests don't know.
    """
    if ENGINE not in TITLES:
        msg = f"{ENGINE_VARIABLE} is {ENGINE!r}; the tests run on {', '.join(TITLES)}."
        raise ValueError(msg)
    running = os.environ.get(DATABASE_VARIABLE)
    if ENGINE == "sqlite":
        file = running or str(Path(tempfile.gettempdir()) / f"workflow_engine_{os.getpid()}.sqlite3")
        return _sqlite(file + name)
    database = (running or f"workflow_engine_{os.getpid()}") + name
    return {
        "ENGINE": f"django.db.backends.{ENGINE}",
        "NAME": database,
        "TEST": {"NAME": database},
        "OPTIONS": {"connect_timeout": 10, **_HASTE.get(ENGINE, {})},
        **server(ENGINE),
    }


def server(engine: str) -> dict[str, str]:
    """Where the one of that vendor is: HOST, PORT, USER and PASSWORD."""
    prefix = f"{PREFIX}{engine.upper()}_"
    return {key: os.environ.get(prefix + key, value) for key, value in _SERVERS[engine].items()}


def _sqlite(file: str) -> dict[str, Any]:
    """A file, opened the way the engine asks for."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": file,
        "TEST": {"NAME": file},
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # A test database need not outlive a power failure, only a killed process.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
    }
