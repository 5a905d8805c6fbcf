from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.servers.server import HOST, Server, ServerMissingError, program

_OPTIONS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    # What is killed is the server, not the machine: what was given to the operating system is not lost. But nothing is
    # acknowledged that was not given to it.
    "fsync": "off",
    "synchronous_commit": "on",
    # A killed server leaves nothing outside its folder.
    "dynamic_shared_memory_type": "mmap",
}


class PostgreSQL(Server):
    """Lets `postgres` in without a password. It does not run as root: then as the user `postgres`."""

    title = "PostgreSQL"
    packages = "postgresql"
    stops_at: ClassVar[signal.Signals] = signal.SIGINT
    """Sessions are ended at once, and the data is written."""
    at_our_end: ClassVar[signal.Signals] = signal.SIGQUIT

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if os.getuid() == 0:
            self.user = _account()

    def prepare(self) -> None:
        initdb = [_program("initdb"), "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        self.run([*initdb, "--locale=C", "--no-sync"])

    def command(self) -> Sequence[str]:
        options = [word for name, value in _OPTIONS.items() for word in ("-c", f"{name}={value}")]
        return [_program("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), *options]

    def ask(self) -> None:
        import psycopg

        psycopg.connect(host=HOST, port=self.port, user="postgres", dbname="postgres", connect_timeout=5).close()

    def create(self, database: str) -> None:
        """Make an empty database."""
        import psycopg

        with psycopg.connect(
            host=HOST, port=self.port, user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f'CREATE DATABASE "{database}"')

    def stop_immediately(self) -> None:
        """Without writing anything any more: as after a crash, the next start has to recover."""
        self._end(signal.SIGQUIT)


def _program(name: str) -> str:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    return program(PostgreSQL, name, *(str(folder) for folder in reversed(installed)))


def _account() -> str:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise ServerMissingError(
            "PostgreSQL does not run as root, and there is no user 'postgres' to run it as: install it as a package"
        ) from None
