"""What befalls the database and the connections to it."""

from __future__ import annotations

import time
from contextlib import suppress
from random import Random

from django.db import DatabaseError, InterfaceError, connection

from tests.celery.chaos.nemesis.victims import Victims
from tests.servers.postgresql import PostgreSQL
from tests.traps.proxy import Cut

_LONGEST_AWAY = 3.0
_UNTIL_A_COMMIT = 3.0


def crash_the_database(victims: Victims, chance: Random) -> bool:
    """As kill -9 does it: it has to recover."""
    database = victims.cell.database
    connection.close()
    with victims.fleet.standing_still("database crashed"):
        database.kill()
    time.sleep(chance.uniform(0, _LONGEST_AWAY))
    database.start()
    return True


def restart_the_database(victims: Victims, chance: Random) -> bool:
    """As for an upgrade: sessions are ended, whatever they do; it is away for a moment."""
    database = victims.cell.database
    connection.close()
    with victims.fleet.standing_still("database restarted"):
        if isinstance(database, PostgreSQL) and chance.random() < 0.5:
            database.stop_immediately()
        else:
            database.stop()
    time.sleep(chance.uniform(0, _LONGEST_AWAY))
    database.start()
    return True


def end_all_sessions(victims: Victims, chance: Random) -> bool:
    """As an administrator does."""
    with victims.fleet.standing_still("sessions ended"):
        ended = _end_sessions()
    connection.close()
    return ended > 0


def cut_the_connections_to_the_database(victims: Victims, chance: Random) -> bool:
    """As a network does; the server finds out when it reads from them or writes into them."""
    with victims.fleet.standing_still("database connections cut"):
        return victims.cell.before_database.cut_all() > 0


def cut_connections_around_their_commits(victims: Victims, chance: Random) -> bool:
    """Whether such a COMMIT was carried out, is not or will be later, the client can't tell."""
    proxy = victims.cell.before_database
    happened = []
    for kind in chance.sample(list(Cut), len(Cut)):
        proxy.cut_another(kind)
        happened.append(proxy.has_cut.wait(_UNTIL_A_COMMIT))
        proxy.let_pass()
    return all(happened)


def _end_sessions() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return int(cursor.fetchone()[0])
        cursor.execute("SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()")
        sessions = [row[0] for row in cursor.fetchall()]
        for session in sessions:
            with suppress(DatabaseError, InterfaceError):  # it is gone already
                cursor.execute(f"KILL CONNECTION {int(session)}")
        return len(sessions)


DEEDS = (
    crash_the_database,
    restart_the_database,
    end_all_sessions,
    cut_the_connections_to_the_database,
    cut_connections_around_their_commits,
)
