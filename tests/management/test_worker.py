from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.management.calling import Said, refused, say
from workflow_engine import engine
from workflow_engine.management.stopping import stopped_by_signals
from workflow_engine.models import WorkflowInstance, WorkflowWorker

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_burst_works_on_what_is_due_says_so_and_ends() -> None:
    row = engine.start("parcel")
    said = say("workflow_worker", "--burst")
    pid = os.getpid()
    assert said.lines == [
        f"Worker {pid} works on database 'default': leave 1, parcel 2, trip 1. Ctrl-C ends it.",
        f"parcel {row.pk}: awaiting paid or refused at await_payment",
        f"Worker {pid} ended; instances driven: 1.",
    ]
    assert not WorkflowWorker.objects.exists()


def test_a_quiet_worker_says_nothing() -> None:
    engine.start("leave")
    assert say("workflow_worker", "--burst", "--verbosity", "0") == Said("", "")
    assert WorkflowInstance.objects.get().status == "awaiting"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_an_orderly_way(number: signal.Signals) -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "django", "workflow_worker"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert first.startswith(f"Worker {process.pid} works on database 'default': ")
    assert (out, err) == (f"Worker {process.pid} ended; instances driven: 0.\n", "")
    assert process.returncode == 0
    assert not WorkflowWorker.objects.exists()


def test_the_handlers_of_before_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals(lambda: None):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_signals_are_left_alone() -> None:
    seen = []

    def elsewhere() -> None:
        with stopped_by_signals(lambda: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


def test_several_processes_work_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    monkeypatch.chdir(ROOT)
    said = say("workflow_worker", "--burst", "--processes", "2")
    assert [" ".join(line.split()[:2]) for line in said.lines[1:]] == ["worker process"] * 4
    assert sorted(line.split()[-1] for line in said.lines[1:]) == ["ended", "ended", "started", "started"]


def test_a_wrong_number_of_processes_is_refused() -> None:
    assert refused("workflow_worker", "--processes", "0") == "--processes is 0. Give a number from 1 on."
