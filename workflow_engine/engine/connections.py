"""What the connections of a worker carry: a limit on how long a transaction may stay idle.

A process that is stopped in the middle of a step (SIGSTOP, a frozen virtual machine, a lost network) keeps its row lock
for as long as its connection lives, which can be for ever. With the limit the database ends that transaction, the
instance is taken up by another worker, and the stopped one finds its transaction gone when it goes on.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from workflow_engine import conf

_LONGEST = timedelta(days=24)
"""PostgreSQL counts milliseconds in 32 bits."""


def limit_idle_transactions(using: str) -> None:
    """Let this process's connections to `using` carry the setting IDLE_IN_TRANSACTION from now on; 0 means no limit.

    PostgreSQL and MariaDB have such a limit; SQLite and MySQL have none, and nothing happens there. It is meant for
    processes that only work on instances: a web process may have good reasons for an idle transaction.
    """
    if using in _limited:
        return
    _limited.add(using)
    connection_created.connect(_limit_new, dispatch_uid="workflow_engine.engine.connections")
    if not connections[using].in_atomic_block:
        connections[using].close()


_limited: set[str] = set()


def _limit_new(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if connection.alias in _limited:
        _limit(connection)


def _limit(connection: BaseDatabaseWrapper) -> None:
    seconds = min(conf.current().duration("IDLE_IN_TRANSACTION"), _LONGEST).total_seconds()
    if connection.vendor == "postgresql":
        statement = f"SET idle_in_transaction_session_timeout = {math.ceil(seconds * 1000)}"
    elif connection.vendor == "mysql" and getattr(connection, "mysql_is_mariadb", False):
        statement = f"SET SESSION idle_transaction_timeout = {math.ceil(seconds)}"
    else:
        return
    with connection.cursor() as cursor:
        cursor.execute(statement)
