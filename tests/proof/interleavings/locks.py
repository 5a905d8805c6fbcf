"""Who waits for a lock right now, by the database's own account."""

from __future__ import annotations

import re

from django.db import connection

_TRANSACTION = re.compile(r"^---TRANSACTION ", re.MULTILINE)
_THREAD = re.compile(r"MariaDB thread id (\d+)|MySQL thread id (\d+)")


def sessions_that_wait() -> set[int]:
    """The numbers of the sessions that wait for another transaction, as `pg_backend_pid()` or `CONNECTION_ID()`."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Not from pg_stat_activity, which shows a transaction the same answer again and again.
            cursor.execute("SELECT pid FROM pg_locks WHERE NOT granted")
            return {pid for (pid,) in cursor.fetchall()}
        # Not from information_schema.innodb_trx, which is a copy: made anew only when nobody has asked for 0.1 seconds.
        cursor.execute("SHOW ENGINE INNODB STATUS")
        transactions = _TRANSACTION.split(cursor.fetchone()[2])[1:]
    found = (_THREAD.search(text) for text in transactions if "LOCK WAIT" in text)
    return {int(match[1] or match[2]) for match in found if match}
