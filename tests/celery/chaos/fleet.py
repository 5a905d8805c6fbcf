"""The processes of a run, and the hands that are laid on them: found out, stopped, gone on, killed, started again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.proof import ledger
from tests.servers import processes
from tests.traps.background import ROOT, eventually

_CELERY = ["-m", "celery", "-A", "tests.celery.chaos.project", "worker", "--pool", "prefork", "-l", "INFO", "-c", "2"]
_PATIENCE = 30.0
_UNTIL_CAUGHT = 3.0
_A_LOOK = 0.005


@dataclass
class Process:
    """One that is started again whenever it ends. `is_done`: it ended by itself, as it should."""

    name: str
    arguments: list[str]
    log: Path
    popen: subprocess.Popen[bytes] | None = None
    is_done: bool = False

    def start(self) -> None:
        """Start it; its output is added to its log."""
        self.popen = processes.start([sys.executable, *self.arguments], self.log, folder=ROOT)

    @property
    def pid(self) -> int:
        assert self.popen is not None
        return self.popen.pid

    @property
    def children(self) -> set[int]:
        """Of a worker, those that run tasks."""
        return processes.children(self.pid)

    def says(self, text: str) -> bool:
        """Whether its log has that."""
        return text in self.log.read_text(errors="replace")

    def has_ended(self) -> bool:
        """Whether it is not there any more."""
        return self.popen is None or self.popen.poll() is not None


@dataclass
class Fleet:
    """Two workers with two children each, a tick and a web process.

    `ended`: how often one ended that nobody had killed, by name.
    """

    logs: Path
    ended: Counter[str] = field(default_factory=Counter)
    _until: dict[int, float] = field(default_factory=dict)
    """When each of those that are stopped goes on."""

    def __post_init__(self) -> None:
        self.workers = [self._process(f"worker{n}", *_CELERY, "-n", f"worker{n}@%h") for n in range(2)]
        self.tick = self._process("tick", "-m", "django", "workflow_tick", "--loop")
        self.web = self._process("web", "-m", "django", "web")

    @property
    def all(self) -> list[Process]:
        return [*self.workers, self.tick, self.web]

    def children(self) -> list[int]:
        """The workers' processes that run tasks."""
        return sorted(pid for worker in self.workers if not worker.has_ended() for pid in worker.children)

    def look_after(self) -> None:
        """Start again what has ended, and let those go on that were stopped long enough."""
        for process in self.all:
            if process.is_done or not process.has_ended():
                continue
            assert process.popen is not None
            if process is self.web and process.popen.returncode == 0:
                process.is_done = True
                continue
            self.ended[process.name] += 1
            process.start()
        for pid, until in list(self._until.items()):
            if time.monotonic() > until:
                self.wake(pid)

    def kill(self, process: Process) -> None:
        """End a process and its children without a word, and start it again."""
        self._end_now(process, "kill")
        process.start()

    def kill_child(self, pid: int) -> None:
        """End a worker's child without a word; the worker will notice."""
        self.halt([pid], "kill")
        processes.send(pid, signal.SIGKILL)
        self._until.pop(pid, None)

    def caught(self, kinds: Collection[str]) -> int | None:
        """A worker's child in the middle of user code of one of these kinds, which stands still now; None if there was
        none for a while.
        """
        end = time.monotonic() + _UNTIL_CAUGHT
        while time.monotonic() < end:
            for pid in set(self.children()) - self._until.keys():
                self._halt(pid)
                last = ledger.last_of(pid)
                if last is not None and last["what"] in {"began", "renewed"} and last["kind"] in kinds:
                    return pid
                processes.send(pid, signal.SIGCONT)
            time.sleep(_A_LOOK)
        return None

    def stop(self, pids: Iterable[int], seconds: float) -> None:
        """Let them stand still for so long."""
        pids = list(pids)
        self.halt(pids, "stop")
        self._until.update(dict.fromkeys(pids, time.monotonic() + seconds))

    def halt(self, pids: Iterable[int], why: str) -> None:
        """Stop them, wait until they stand still, and tell the ledger that their transactions are lost: whoever does
        something to them or to their connections does it before anybody can get on with their instances.
        """
        pids = list(pids)
        for pid in pids:
            processes.send(pid, signal.SIGSTOP)
        for pid in pids:
            self._halt(pid)
            ledger.write("died", who=pid, by=why)

    def _halt(self, pid: int) -> None:
        processes.send(pid, signal.SIGSTOP)
        while processes.state(pid) not in {"T", "Z", "X", ""}:
            time.sleep(_A_LOOK)

    @contextmanager
    def standing_still(self, why: str) -> Iterator[None]:
        """Within the block no step runs, and the transactions that were open before are as good as lost."""
        halted = self.children()
        self.halt(halted, why)
        try:
            yield
        finally:
            for pid in set(halted) - self._until.keys():
                processes.send(pid, signal.SIGCONT)

    def wake(self, pid: int) -> None:
        """Let one go on that is stopped."""
        self._until.pop(pid, None)
        processes.send(pid, signal.SIGCONT)

    def wake_all(self) -> None:
        """Let all go on."""
        for pid in list(self._until):
            self.wake(pid)

    def end(self) -> None:
        """Let all of them end in an orderly way; who does not in time is killed."""
        self.wake_all()
        running = [process for process in self.all if not process.has_ended()]
        for process in running:
            processes.send(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        for process in running:
            assert process.popen is not None
            try:
                process.popen.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                self.ended[f"{process.name}, after a SIGTERM not at all"] += 1
                self._end_now(process, "end")

    def _end_now(self, process: Process, why: str) -> None:
        """With its children, without a word."""
        family = [process.pid, *process.children]
        self.halt(family, why)
        for pid in family:
            processes.send(pid, signal.SIGKILL)
            self._until.pop(pid, None)
        assert process.popen is not None
        process.popen.wait(_PATIENCE)

    def _process(self, name: str, *arguments: str) -> Process:
        return Process(name, list(arguments), self.logs / f"{name}.log")


@contextmanager
def fleet_at_work(logs: Path) -> Iterator[Fleet]:
    """A fleet that has begun to work; after the block nothing is left of it."""
    fleet = Fleet(logs)
    try:
        for worker in fleet.workers:
            worker.start()
        for worker in fleet.workers:
            eventually(partial(worker.says, " ready."), pause=0.1)
        fleet.tick.start()
        fleet.web.start()
        yield fleet
    finally:
        fleet.end()
