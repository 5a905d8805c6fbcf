"""Other threads and other processes, as a trap needs them: with connections of their own, never waited for blindly."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

from django.db import connection, connections

PATIENCE = 60.0
"""Seconds. Nothing takes so long unless a guard is missing; a test that passes never waits for it."""

ROOT = Path(__file__).parents[2]

T = TypeVar("T")


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Start `work` in a thread of its own, at the test's time; its connections are closed at the end."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            future.set_exception(error)
        finally:
            connections.close_all()

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future


def wait_for(event: threading.Event) -> None:
    """Until another thread says so; an error if it never does."""
    assert event.wait(PATIENCE), "what this waits for did not happen"


def eventually(what: Callable[[], Any], pause: float = 0.01) -> Any:
    """The first true answer of `what`, which is asked again and again: for states that only the database can tell."""
    end = time.monotonic() + PATIENCE
    while not (answer := what()):
        assert time.monotonic() < end, "what this waits for did not happen"
        time.sleep(pause)
    return answer


@contextmanager
def connection_settings(using: str = "default", **changes: Any) -> Iterator[None]:
    """Within the block every thread connects to the database with other settings; OPTIONS are added to."""
    settings = connections[using].settings_dict
    before = {key: settings.get(key) for key in changes}
    options = {"OPTIONS": {**settings["OPTIONS"], **changes["OPTIONS"]}} if "OPTIONS" in changes else {}
    connections[using].close()
    settings.update({**changes, **options})
    try:
        yield
    finally:
        connections[using].close()
        settings.update(before)


@contextmanager
def process(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the module `name` of tests.traps.children on this test's database, and ends with the block.

    Its errors go to this process's stderr, which pytest shows when the test fails.
    """
    command = [sys.executable, "-m", f"tests.traps.children.{name}", *arguments]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def line_from(running: subprocess.Popen[str]) -> str:
    """The next line it prints; "" at its end."""
    assert running.stdout is not None
    return running.stdout.readline().rstrip("\n")


def until_somebody_waits_for_a_lock() -> None:
    """Until a statement on this test's database waits for a row that another transaction has locked."""
    waiting = {
        # Not from pg_stat_activity, which shows a transaction the same answer again and again.
        "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN"
        " (SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database WHERE datname = current_database())",
        "mysql": "SELECT count(*) FROM information_schema.innodb_trx t"
        " JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id"
        " WHERE p.db = database() AND t.trx_state = 'LOCK WAIT'",
    }
    with connection.cursor() as cursor:

        def ask() -> int:
            cursor.execute(waiting[connection.vendor])
            return int(cursor.fetchone()[0])

        # MariaDB's answer is a copy, made anew only when nobody has asked for a tenth of a second.
        eventually(ask, pause=0.15)
