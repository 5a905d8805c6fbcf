"""Real worker processes, and waiting for what they do. Nothing here depends on how fast the machine is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
"""Seconds after which something that has not happened counts as a failure, however slow the machine is."""

QUICK = {"POLL_INTERVAL": 0.05}


class Worker:
    """A `workflow_worker` in a process of its own, on the database of the tests."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """As if the power failed: the process gets no chance to do anything."""
        self._process.kill()
        self._process.wait()

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it said, once it has ended."""
        said, _ = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, said


@contextmanager
def worker(*arguments: str, **settings: Any) -> Iterator[Worker]:
    """A running worker; whatever happens in the block, it is gone afterwards, and so are its children."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.worker.settings",
        "WORKFLOW_ENGINE_TEST_SETTINGS": json.dumps({**QUICK, **settings}),
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "django", "workflow_worker", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Worker(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(happened: Callable[[], Any], what: str) -> None:
    """Look until it has happened."""
    limit = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < limit, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.05)
