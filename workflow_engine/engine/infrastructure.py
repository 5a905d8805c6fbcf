"""Failures of the database that say nothing about the user's code, and the one way they are answered.

A deadlock, a lock timeout, a lost connection: the transaction is run again whole, and no attempt of a step is used.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from django.db import Error as DjangoDatabaseError
from django.db import InterfaceError, OperationalError, connections, transaction

from workflow_engine import conf
from workflow_engine.failpoints import failpoint

_SQLSTATES = frozenset({"40001", "40P01", "55P03", "25P03", "25P04", "53300"})
_SQLSTATE_CLASSES = ("08", "57P0")
"""PostgreSQL: serialization failure, deadlock, lock timeout, idle or overlong transaction, too many connections; lost
connections; shutdowns. Never 57014 (somebody cancelled the statement) nor class 23 (the data is wrong)."""

_MYSQL_CODES = frozenset({1020, 1040, 1053, 1205, 1213, 1927, 2002, 2003, 2006, 2013, 3572, 4031})
"""MySQL and MariaDB: record changed, too many connections, shutdown, lock timeout, deadlock, killed, can't connect,
gone, lost, NOWAIT, disconnected for inactivity."""

_FIRST_PAUSE = 0.05

logger = logging.getLogger("workflow_engine")


class Result(Protocol):
    """What a unit returns: it can tell whether it was committed after all, and what is to be done then."""

    def was_committed(self) -> bool:
        """Read again, in a new transaction, whether the writes are there."""

    def finish(self) -> None:
        """Run the effects; safe to call when the commit hook did it already."""


R = TypeVar("R", bound=Result)


def is_infrastructure(error: BaseException) -> bool:
    """Whether the error, or one it was raised from, is the database's trouble and not the caller's."""
    return any(_is_transient(link) for link in _chain(error) if isinstance(link, DjangoDatabaseError))


def run_outermost(using: str, unit: Callable[[], R]) -> R:
    """Run `unit` in an outermost transaction of its own, again while the database has trouble.

    An error around COMMIT is neither success nor failure: the row is read again, and only what is not there is done
    again. Even then the COMMIT may be on its way still, so a try that meets its predecessor's rows reads once more. An
    exception after COMMIT (a hook of the user's) means committed; it is not raised here.

    Raises:
        Exception: what `unit` raised; and the last database error when the retries are spent.
        RuntimeError: the caller has a transaction open.
    """
    retries = conf.current().INFRASTRUCTURE_RETRIES
    unknown: list[R] = []
    for tried in range(retries + 1):
        try:
            with transaction.atomic(using=using, durable=True):
                result = unit()
                unknown.append(result)
                failpoint("commit.before")
            failpoint("commit.after")
        except Exception as error:
            stands = next((result for result in unknown if _stands(result, error, using)), None)
            if stands is not None:
                return stands
            if not is_infrastructure(error) or tried == retries:
                raise
            _recover_connection(using)
            _pause(tried)
        else:
            return result
    raise AssertionError  # the loop always returns or raises


def run_joined(using: str, unit: Callable[[], R]) -> R:
    """Run `unit` in the caller's transaction, in a savepoint; in one of its own if there is none.

    In the caller's transaction trouble is not retried: it is the caller's to run again, whole. So that nothing half
    done can be committed, that transaction is marked for rollback.
    """
    if not connections[using].in_atomic_block:
        return run_outermost(using, unit)
    try:
        with transaction.atomic(using=using):
            return unit()
    except DjangoDatabaseError as error:
        if is_infrastructure(error):
            transaction.set_rollback(True, using=using)
        raise


def _stands(result: Result, error: Exception, using: str) -> bool:
    """Whether the unit, which ran to its end before `error`, is committed.

    Raises:
        DatabaseError: the database could not be asked for longer than the retries last, so that nobody knows.
    """
    if not _read_again(result.was_committed, using):
        return False
    logger.error("An error after a commit, or about one that was carried out after all", exc_info=error)
    result.finish()
    return True


def _read_again(read: Callable[[], bool], using: str) -> bool:
    """What `read` finds, once the database can be read: a server that broke a connection may be away for a while."""
    retries = conf.current().INFRASTRUCTURE_RETRIES
    for tried in range(retries + 1):
        try:
            _recover_connection(using)
            return read()
        except DjangoDatabaseError as error:
            if not is_infrastructure(error) or tried == retries:
                raise
            _pause(tried)
    raise AssertionError  # the loop always returns or raises


def _pause(tried: int) -> None:
    """Longer each time, and by chance, so that two that got in each other's way don't meet again."""
    time.sleep(random.uniform(0.5, 1) * _FIRST_PAUSE * 2**tried)  # noqa: S311 - no secret


def _recover_connection(using: str) -> None:
    """Drop a connection that no longer works, so that the next use opens a new one."""
    connection = connections[using]
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _is_transient(error: DjangoDatabaseError) -> bool:
    cause = error.__cause__
    sqlstate = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if sqlstate:
        return sqlstate in _SQLSTATES or sqlstate.startswith(_SQLSTATE_CLASSES)
    code = error.args[0] if error.args else None
    if isinstance(code, int):
        return code in _MYSQL_CODES or (code == 0 and isinstance(error, InterfaceError))
    text = str(error)
    if sqlite_name := getattr(cause, "sqlite_errorname", ""):
        return str(sqlite_name).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    # psycopg gives no SQLSTATE when the connection itself failed.
    return isinstance(error, OperationalError | InterfaceError) and "connection" in text.lower()
