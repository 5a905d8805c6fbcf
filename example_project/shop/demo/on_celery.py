"""The demo on Celery: `celery worker` and `celery beat` do the work."""

from __future__ import annotations

import io
import os
import signal
import subprocess
from types import TracebackType

from celery import current_app
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from . import servers
from .workers import COUNT, Workers


class CeleryWorkers(Workers):
    """One `celery worker` with COUNT child processes, and one `celery beat` that has it tick."""

    described = f"celery worker with {COUNT} child processes, and celery beat"
    by_hand = "manage.py outside, celery -A example_project worker, and the same with beat, in three more terminals"

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(environment)
        self._name = f"demo-{os.getpid()}@localhost"

    @classmethod
    def prepare(cls) -> str:
        broker, database = servers.ask_broker(), servers.create_database()
        return f"{connection.settings_dict['NAME']}, on {database}; the broker is {broker}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        servers.leave_broker()

    def kill(self, pid: int) -> bool:
        """The worker starts another child by itself."""
        if pid not in self._children():
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def _children(self) -> list[int]:
        """As the worker itself says; if it has no time to answer, there are none for now."""
        inspect = current_app.control.inspect([self._name], timeout=servers.PATIENCE, limit=1)
        return [child for stats in (inspect.stats() or {}).values() for child in stats["pool"]["processes"]]

    def _start_all(self) -> None:
        # They have sessions of their own, so that all of one can be killed. A terminal that is closed ends them too.
        signal.signal(signal.SIGHUP, signal.default_int_handler)
        if apps.is_installed("django_celery_beat"):
            call_command("workflow_beat", stdout=io.StringIO())
        celery = ("-m", "celery", "-A", "example_project")
        self._start(*celery, "beat", own_session=True)
        worker = ("worker", "-n", self._name, "--concurrency", str(COUNT), "--without-gossip", "--without-mingle")
        self._start(*celery, *worker, own_session=True)

    def _kill_all_of(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
