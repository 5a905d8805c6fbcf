"""How late are timers with real Celery workers? python -m tests.benchmarks.timers, or: make bench-timers

Instances sleep until moments that are spread over a minute; then a burst of them until one and the same moment.
Lateness is the database's clock at the beginning of the next step, minus the moment. It depends on the machine, so it
is printed and not judged. That none was early is judged, that each woke once, and that tick handed out each once; but
for those that no worker came to within GRACE, which are handed out again.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0
"""Seconds without anything happening after which it is given up."""


@dataclass(frozen=True, slots=True)
class Run:
    """So many timers, `spread` over so many seconds."""

    title: str
    count: int
    spread: float
    lead: float
    """Seconds until the first is due: the instances have to be asleep by then."""


def main() -> int:
    options = _options()
    _configure(options)
    from tests.benchmarks import machine

    runs = [
        Run("spread", options.timers, options.spread, 10 + options.timers / 20),
        Run("burst", options.burst, 0.0, 10 + options.burst / 20),
    ]
    print(*machine.described(options.broker), sep="\n")
    print(
        f"workers   {options.children} children of one celery worker, and workflow_tick --loop with TICK_INTERVAL = 10"
    )
    print(machine.load("at first"))
    wrong: list[str] = []
    with TemporaryDirectory() as folder, _database(), _processes(Path(folder), options) as tick_log:
        for run in runs:
            wrong += _measured(run, tick_log)
            print(machine.load("now"))
    print(*(f"WRONG     {text}" for text in wrong), sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", choices=["redis", "rabbitmq"], default="redis")
    parser.add_argument("--database", choices=["postgresql", "mysql"], default="postgresql")
    parser.add_argument("--timers", type=int, default=1000, help="spread over --spread seconds")
    parser.add_argument("--spread", type=float, default=60.0)
    parser.add_argument("--burst", type=int, default=2000, help="that wake at one moment")
    parser.add_argument("--children", type=int, default=4, help="processes of the worker")
    return parser.parse_args()


def _configure(options: argparse.Namespace) -> None:
    """Before Django is imported: what these processes share is in the environment."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.settings"
    from tests import databases

    os.environ[databases.ENGINE_VARIABLE] = databases.ENGINE = options.database
    from tests.celery.live import cells

    os.environ[cells.BROKER_VARIABLE] = cells.BROKERS[options.broker]
    import django

    django.setup()


@contextmanager
def _database() -> Iterator[None]:
    """A database of this run's own, which the processes are told of."""
    from django.db import connection

    from tests.databases import DATABASE_VARIABLE

    before = connection.settings_dict["NAME"]
    os.environ[DATABASE_VARIABLE] = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)


@contextmanager
def _processes(folder: Path, options: argparse.Namespace) -> Iterator[Path]:
    """A worker and a tick, until the end of the block; the tick's log."""
    from tests.celery.live import cells

    celery = [
        "-m",
        "celery",
        "-A",
        "tests.celery.live.project",
        "worker",
        "--pool",
        "prefork",
        "-l",
        os.environ.get("BENCH_LOG", "WARNING"),
    ]
    celery += ["--without-gossip", "--without-mingle", "-c", str(options.children), "-Q", cells.queue()]
    commands = {
        "worker": [*celery, "-n", f"{cells.queue()}@%h"],
        "tick": ["-m", "django", "workflow_tick", "--loop"],
    }
    started = []
    try:
        for name, command in commands.items():
            with (folder / name).open("wb") as log:
                started.append(subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=log, stderr=log))
        yield folder / "tick"
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)
        _leave_broker()


def _leave_broker() -> None:
    from celery import current_app

    queue = current_app.amqp.queues[current_app.conf.task_default_queue]
    with current_app.connection_for_write() as link:
        bound = queue(link.default_channel)
        bound.declare()
        bound.delete()
        bound.exchange.delete()


def _measured(run: Run, tick_log: Path) -> list[str]:
    """Start, wait, print; what is wrong."""
    from tests.celery.live.project.workflows import Timer
    from tests.shop.models import Effect
    from workflow_engine import clock, engine
    from workflow_engine.models import WorkflowInstance

    said = len(tick_log.read_text())
    first = clock.now("default") + timedelta(seconds=run.lead)
    due: dict[UUID, datetime] = {}
    for number in range(run.count):
        moment = first + timedelta(seconds=run.spread * number / run.count)
        due[engine.start(Timer, context={"due": moment.isoformat()}).pk] = moment
    rows = WorkflowInstance.objects.filter(workflow_name=Timer.name)
    _until(lambda: rows.filter(status="pending").count(), 0)
    if clock.now("default") >= first:
        return [f"{run.title}: they were not asleep in time; this machine is too slow for so many"]
    _until(lambda: rows.live().count(), 0)
    woken: dict[UUID, list[datetime]] = {pk: [] for pk in due}
    for pk, note in Effect.objects.filter(instance_id__in=due).values_list("instance_id", "note"):
        woken[pk].append(datetime.fromisoformat(note))
    handed_out = sum(map(int, re.findall(r"Handed out (\d+)", tick_log.read_text()[said:])))
    return _told_and_judged(run, due, woken, handed_out)


def _until(count: Callable[[], int], wanted: int) -> None:
    last, changed = -1, time.monotonic()
    while (now := count()) != wanted:
        if now != last:
            last, changed = now, time.monotonic()
        if time.monotonic() > changed + PATIENCE:
            sys.exit(f"Nothing has happened for {PATIENCE:g} s; {now} are left.")
        time.sleep(0.2)


def _told_and_judged(
    run: Run, due: dict[UUID, datetime], woken: dict[UUID, list[datetime]], handed_out: int
) -> list[str]:
    from workflow_engine import conf

    times = Counter(map(len, woken.values()))
    late = sorted((moments[0] - due[pk]).total_seconds() for pk, moments in woken.items() if moments)
    early = sum(seconds < 0 for seconds in late)
    in_time = late[-1] < conf.current().duration("GRACE").total_seconds()
    spread = f"over {run.spread:g} s" if run.spread else "at one moment"
    print(f"{run.title:<9} {run.count:,} timers {spread}; {early} early; {times[1]:,} woke once")
    print(f"late      {_percentiles(late)}")
    print(f"tick      handed out {handed_out:,}{'' if in_time else ', some again after GRACE'}")
    if not run.spread:
        print(f"rate      {run.count / late[-1]:,.0f} a second, from that moment until the last had woken")
    wrong = []
    if early:
        wrong.append(f"{run.title}: {early} were early")
    if times[1] != run.count:
        wrong.append(f"{run.title}: so many woke so often: {dict(times)}")
    if handed_out > run.count and in_time:
        wrong.append(f"{run.title}: {handed_out} were handed out")
    return wrong


def _percentiles(late: Sequence[float]) -> str:
    """By the nearest rank."""
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return ", ".join(f"{name} {late[math.ceil(len(late) * part) - 1]:.3f} s" for name, part in ranks.items())


if __name__ == "__main__":
    sys.exit(main())
