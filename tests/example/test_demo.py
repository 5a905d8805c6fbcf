from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from example_project.shop.demo.accident import Accident
from example_project.shop.demo.play import Play
from example_project.shop.demo.progress import Bar
from example_project.shop.demo.staff import Reviewer
from example_project.shop.demo.workers import EmbeddedWorkers, WorkerDiedError, Workers
from example_project.shop.management.commands.demo import Command

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

ROOT = Path(__file__).resolve().parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """The real command with the example's own settings, on databases of its own, in a process group of its own."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "SHOP_DATABASE": str(folder / "demo.sqlite3"),
        "SHOP_OUTSIDE_LEDGER": str(folder / "outside.sqlite3"),
    }
    command = [sys.executable, "manage.py", "demo", *options]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    with start(folder, *options) as process:
        try:
            stdout, stderr = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_the_demo_runs_adds_up_and_can_be_run_again(tmp_path: Path) -> None:
    first = demo(tmp_path, "--count", "12")
    again = demo(tmp_path, "--count", "12")
    assert (first.returncode, first.stderr) == (0, "")
    assert (again.returncode, again.stderr) == (0, "")
    assert "Emptied    12 orders that were here before" in again.stdout
    assert without_what_varies(first.stdout) == without_what_varies(again.stdout)
    assert re.findall(r"^ +(ok|WRONG) +(\w+)", first.stdout, re.MULTILINE) == [
        ("ok", "stock"),
        ("ok", "totals"),
        ("ok", "money"),
        ("ok", "parcels"),
        ("ok", "provider"),
        ("ok", "carrier"),
        ("ok", "engine"),
    ]
    assert re.search(
        r"1  worker killed \(SIGKILL, process \d+\) after the provider had taken the money for\n"
        r" +S-1011 and before anybody here knew; another one asked again after [\d.]+ s, and it is shipped\n",
        first.stdout,
    )
    assert re.search(r" 1  payments given back: 823\.77 SEK\n", first.stdout)
    assert re.search(r"python manage\.py workflow_show shop\.order:\d+\n", first.stdout)


def without_what_varies(output: str) -> list[str]:
    """How often something was asked again depends on the machine's speed too: an answer may come too late."""
    varies = r"Emptied|Took|Working| +\d+  (answers that never|requests that found|repetitions)"
    lines = [line for line in output.splitlines() if not re.match(varies, line)]
    return [re.sub(r"shop\.order:\d+|process \d+|after [\d.]+ s", "…", line) for line in lines]


def test_a_quiet_demo_says_nothing_when_all_is_well(tmp_path: Path) -> None:
    run = demo(tmp_path, "--count", "2", "--quiet")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_leaves_no_process_behind(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path, "--count", "40") as process:
        assert process.stdout is not None
        # The workers are running when it says so.
        next(line for line in process.stdout if line.startswith("Starting"))
        process.send_signal(number)
        _, stderr = process.communicate(timeout=180)
    assert stderr == "CommandError: Stopped half-way. Run it again whenever you like: it starts afresh.\n"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.django_db
def test_a_demo_whose_books_do_not_add_up_fails_and_says_where(reviewer: User) -> None:
    charge = {"id": "pay_1", "reference": "S-1", "amount_minor": 80_00, "currency": "EUR", "refund": None}
    ledger = {"charges": [charge], "parcels": [], "counts": {}}
    workers = EmbeddedWorkers({})
    command = Command(stdout=io.StringIO())
    command._quiet = True
    with pytest.raises(CommandError) as caught:
        command._conclude(Play([], Reviewer(reviewer)), ledger, Accident(workers))
    assert str(caught.value) == (
        "The books do not add up:\n  pay_1: we have nothing; the provider has 80.00 EUR for S-1, kept"
    )


def test_a_worker_that_ends_by_itself_ends_the_demo_with_what_it_said() -> None:
    nowhere = EmbeddedWorkers({"DJANGO_SETTINGS_MODULE": "no_such_settings"})
    with nowhere as workers, pytest.raises(WorkerDiedError) as caught:
        check_until_it_raises(workers)
    assert "No module named 'no_such_settings'" in str(caught.value)


def check_until_it_raises(workers: Workers) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        workers.check()
        time.sleep(0.05)


def test_a_process_that_is_no_worker_is_not_killed() -> None:
    assert EmbeddedWorkers({}).kill(os.getpid()) is False


def test_the_demo_does_not_run_where_real_orders_live(settings: Settings) -> None:
    settings.SHOP_DEMO = False
    with pytest.raises(CommandError) as caught:
        call_command("demo")
    assert str(caught.value) == (
        "SHOP_DEMO is off: the demo empties the shop and creates a login with a well-known password."
    )


def test_the_bar_is_drawn_over_itself_on_a_terminal() -> None:
    out = Terminal()
    bar = Bar(out, "At rest", 4)
    for done in (0, 2, 2, 4):
        bar.update(done)
    bar.close()
    assert out.getvalue() == (
        f"\rAt rest [{'.' * 32}] 0/4\rAt rest [{'#' * 16}{'.' * 16}] 2/4\rAt rest [{'#' * 32}] 4/4\n"
    )


def test_the_bar_is_a_few_lines_in_a_file() -> None:
    out = io.StringIO()
    bar = Bar(out, "At rest", 100)
    for done in range(101):
        bar.update(done)
    bar.close()
    assert out.getvalue().splitlines() == [f"At rest {done}/100" for done in (25, 50, 75, 100)]
