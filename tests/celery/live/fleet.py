"""Real workers and a tick, as processes of the test's own; and what a test does to them and to the broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.celery.brokers import app_at
from tests.celery.live import cells
from tests.celery.live.project.workflows import PACKING
from tests.traps.background import ROOT, eventually

if TYPE_CHECKING:
    from celery import Celery


@dataclass
class Process:
    """One that was started, with its log."""

    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def children(self) -> set[int]:
        """Processes that it forked and that live."""
        listed = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        return {int(pid) for pid in listed.read_text().split()}

    def says(self, text: str) -> bool:
        assert self.popen.poll() is None, f"it ended:\n{self.log.read_text()}"
        return text in self.log.read_text()

    def end(self) -> None:
        """In an orderly way, or at least soon."""
        try:
            self.popen.wait(15)
        except subprocess.TimeoutExpired:
            for pid in [*self.children, self.popen.pid]:
                kill(pid)
            self.popen.wait()


@dataclass
class Fleet:
    """A worker of the default queue, one of the packers' queue, a tick, and the web side's Celery app."""

    app: Celery
    broker: str
    worker: Process
    packer: Process
    tick: Process

    @contextmanager
    def without_worker(self) -> Iterator[None]:
        """Within the block nobody takes messages from the default queue."""
        self.worker.popen.send_signal(signal.SIGTERM)
        self.worker.end()
        yield
        self.worker = _start(cells.BROKERS[self.broker], self.worker.log.parent, *WORKER)
        eventually(partial(self.worker.says, " ready."), pause=0.1)

    def waiting(self) -> int:
        """Messages that wait in the default queue."""
        if self.broker == "redis":
            with _redis() as client:
                return int(client.llen(f"{cells.queue()}:{cells.queue()}"))
        with self.app.connection_for_read() as connection:
            declared = connection.default_channel.queue_declare(cells.queue(), passive=True)
            return int(declared.message_count)

    def lose_all_messages(self) -> None:
        """As a broker does that starts empty."""
        if self.broker == "redis":
            with _redis() as client:
                prefix = f"{cells.queue()}:"
                client.delete(*(prefix + key for key in (cells.queue(), PACKING, "unacked", "unacked_index")))
            return
        with self.app.connection_for_write() as connection:
            for queue in (cells.queue(), PACKING):
                connection.default_channel.queue_purge(queue)


@contextmanager
def fleet_at(broker: str, logs: Path) -> Iterator[Fleet]:
    """A fleet that ends with the block, and leaves nothing in the broker."""
    url = cells.BROKERS[broker]
    with app_at(url, task_default_queue=cells.queue(), broker_transport_options=cells.transport_options(url)) as app:
        start = partial(_start, url, logs)
        fleet = Fleet(
            app,
            broker,
            worker=start(*WORKER),
            packer=start("packer", *_worker("packer", PACKING, 1)),
            tick=start("tick", "-m", "django", "workflow_tick", "--loop"),
        )
        try:
            for process in (fleet.worker, fleet.packer):
                eventually(partial(process.says, " ready."), pause=0.1)
            yield fleet
        finally:
            for process in (fleet.worker, fleet.packer, fleet.tick):
                process.popen.send_signal(signal.SIGTERM)
            for process in (fleet.worker, fleet.packer, fleet.tick):
                process.end()
            _forget(fleet)


def kill(pid: int) -> None:
    """SIGKILL, if it still lives."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def killed_in_the_middle(file: Path) -> int:
    """Wait until a process waits to be killed, and kill it."""
    eventually(lambda: file.exists() and file.read_text())
    pid = int(file.read_text())
    time.sleep(0.1)
    kill(pid)
    return pid


def _worker(name: str, queue: str, concurrency: int) -> list[str]:
    celery = ["-m", "celery", "-A", "tests.celery.live.project", "worker", "--pool", "prefork", "-l", "INFO"]
    # Two runs may share a broker, and a node's name is that of its mailbox there.
    node = f"{name}_{cells.queue()}@%h"
    return [*celery, "--without-gossip", "--without-mingle", "-c", str(concurrency), "-n", node, "-Q", queue]


WORKER = ("worker", *_worker("worker", cells.queue(), 2))


def _start(url: str, logs: Path, name: str, *arguments: str) -> Process:
    log = logs / f"{name}.log"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.celery.live.project.settings",
        cells.BROKER_VARIABLE: url,
        "PYTHONWARNINGS": "ignore",
    }
    with log.open("wb") as out:
        command = [sys.executable, *arguments]
        return Process(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT), log)


def _forget(fleet: Fleet) -> None:
    """Remove this run's queues."""
    if fleet.broker == "redis":
        with _redis() as client:
            for key in client.scan_iter(f"{cells.queue()}:*"):
                client.delete(key)
        return
    with fleet.app.connection_for_write() as connection:
        for queue in (cells.queue(), PACKING):
            connection.default_channel.queue_delete(queue)


def _redis() -> Any:
    import redis

    return redis.Redis.from_url(cells.BROKERS["redis"])
