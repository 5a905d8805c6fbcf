from __future__ import annotations

import getpass
from collections.abc import Sequence
from contextlib import closing

from tests.servers.server import HOST, Server, program


class MariaDB(Server):
    """Lets `root` in without a password."""

    title = "MariaDB"
    packages = "mariadb-server"

    def prepare(self) -> None:
        install = [program(MariaDB, "mariadb-install-db"), "--no-defaults", f"--datadir={self.folder / 'data'}"]
        root = ["--auth-root-authentication-method=normal", "--skip-test-db", f"--user={getpass.getuser()}"]
        self.run([*install, *root])

    def command(self) -> Sequence[str]:
        return [
            program(MariaDB, "mariadbd", "/usr/sbin", "/usr/local/sbin", "/usr/libexec"),
            "--no-defaults",
            f"--user={getpass.getuser()}",
            f"--datadir={self.folder / 'data'}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--bind-address={HOST}",
            f"--port={self.port}",
            "--skip-log-bin",
            # What is killed is the server, not the machine: each commit is given to the operating system.
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=64M",
            "--character-set-server=utf8mb4",
        ]

    def ask(self) -> None:
        import MySQLdb

        MySQLdb.connect(host=HOST, port=self.port, user="root", connect_timeout=5).close()

    def create(self, database: str) -> None:
        """Make an empty database."""
        import MySQLdb

        with closing(MySQLdb.connect(host=HOST, port=self.port, user="root")) as connection:
            connection.cursor().execute(f"CREATE DATABASE `{database}`")
