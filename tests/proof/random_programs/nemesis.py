"""Worker processes, and what befalls them: they are killed, stopped for a while, and cut off from the database; or its
server is stopped or killed, and started again.

Before anything befalls a process it is stopped, and the ledger is told that its transaction is lost: so nobody else can
get on with its instance unnoticed in between.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from tests.proof import ledger
from tests.proof.deadlocks import noting_deadlocks
from tests.proof.faults import commits_meet, now_and_then
from tests.servers.server import Server
from workflow_engine.worker import Worker

_PATIENCE = 20.0


class Nemesis:
    """Keeps a number of workers alive, and lets things befall them.

    `done`: what befell them, by kind. A `server` is one that may be stopped and killed.
    """

    def __init__(self, chance: Random, workers: int, longest_stop: float, server: Server | None = None) -> None:
        self._chance, self._longest_stop = chance, longest_stop
        self._stopped: dict[int, float] = {}
        """When each of those that are stopped goes on."""
        self._pids: list[int] = []
        self.done: Counter[str] = Counter()
        self._server = server
        self._has_sessions = connection.vendor != "sqlite"
        for _ in range(workers):
            self._start()

    def strike(self) -> None:
        """Let something befall one of them, or now and then all of them."""
        self._wake()
        if self._server is not None and self._chance.random() < 0.1:
            self._restart_the_server(self._server)
            return
        running = [pid for pid in self._pids if pid not in self._stopped]
        if not running:
            return
        pid = self._chance.choice(running)
        kinds = ["kill", "kill", "stop", "cut"] if self._has_sessions else ["kill", "kill", "stop"]
        kind = self._chance.choice(kinds)
        if not self._halt(pid, kind):
            self._restart(pid)
            return
        self.done[f"worker: {kind}"] += 1
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._restart(pid)
        elif kind == "cut":
            end_sessions_of(pid)
            os.kill(pid, signal.SIGCONT)
        else:
            self._stopped[pid] = time.monotonic() + self._chance.uniform(0.05, self._longest_stop)
            if not self._has_sessions:
                # It may be holding the only lock that there is, and this process must not wait for that.
                time.sleep(self._stopped[pid] - time.monotonic())
                self._wake(all_of_them=True)

    def _restart_the_server(self, server: Server) -> None:
        how = self._chance.choice(["stop", "kill"])
        connection.close()
        server.stop() if how == "stop" else server.kill()
        server.start()
        self.done[f"database server: {how}"] += 1

    def look_after(self) -> None:
        """Let those go on that were stopped long enough."""
        self._wake()

    def end(self) -> None:
        """Let all of them end as they should; who does not in time is killed."""
        self._wake(all_of_them=True)
        for pid in self._pids:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        for pid in self._pids:
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline and self._halt(pid, "end"):
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)
        self._pids = []

    def _wake(self, *, all_of_them: bool = False) -> None:
        for pid, until in list(self._stopped.items()):
            if all_of_them or time.monotonic() > until:
                del self._stopped[pid]
                os.kill(pid, signal.SIGCONT)

    def _halt(self, pid: int, why: str) -> bool:
        """Stop it, and wait until it stands still; False if it has ended by itself."""
        os.kill(pid, signal.SIGSTOP)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return False
        ledger.write("died", who=pid, by=why)
        return True

    def _restart(self, pid: int) -> None:
        self._pids.remove(pid)
        self._start()

    def _start(self) -> None:
        connections.close_all()  # a connection is one process's
        pid = os.fork()
        if pid == 0:
            _live()
        self._pids.append(pid)


def end_sessions_of(pid: int) -> None:
    """Let the database end the sessions of a worker, whatever it is doing."""
    sessions = [entry["session"] for entry in ledger.read() if entry["what"] == "session" and entry["pid"] == pid]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_terminate_backend(%s)", [sessions[-1]] if sessions else [0])
            return
        for session in sessions[-1:]:
            with suppress(OperationalError):  # it is gone already
                cursor.execute(f"KILL CONNECTION {int(session)}")


@contextmanager
def nemesis(chance: Random, workers: int, longest_stop: float, server: Server | None = None) -> Iterator[Nemesis]:
    """Within the block there are workers, and afterwards there are none."""
    running = Nemesis(chance, workers, longest_stop, server)
    try:
        yield running
    finally:
        running.end()


def _note_session(connection: BaseDatabaseWrapper, **_: Any) -> None:
    driver: Any = connection.connection
    if connection.vendor == "postgresql":
        ledger.write("session", session=driver.info.backend_pid)
    elif connection.vendor == "mysql":
        ledger.write("session", session=driver.thread_id())


def _die_with(parent: int) -> None:
    """A run that is broken off leaves no workers behind."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _live() -> None:
    """In the child: a worker until SIGTERM; whatever happens, nothing of the parent's goes on here."""
    code = 1
    try:
        random.seed()  # not with the parent's luck
        connection_created.connect(_note_session)
        worker = Worker()
        threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        with noting_deadlocks(connections["default"]), commits_meet(now_and_then(Random(), of_a_hundred=2)):  # noqa: S311
            worker.run()
        connections.close_all()
        code = 0
    except BaseException:  # noqa: BLE001 - there is nobody above
        ledger.write("broke", error=traceback.format_exc())
    finally:
        os._exit(code)
