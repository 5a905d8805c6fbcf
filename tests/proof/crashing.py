"""Crashes: a forked child does the work and kills itself at the n-th failpoint that it passes."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

from django.db import connections

from tests.proof import ledger
from tests.proof.recovery import catch_up
from workflow_engine import failpoints


class BrokenError(AssertionError):
    """The child failed in another way than by dying."""


class Passed:
    """Notes every failpoint that is passed; at number `until` the process is gone."""

    def __init__(self, until: int | None = None) -> None:
        self.names: list[str] = []
        self._until = until

    def __call__(self, name: str) -> None:
        """A failpoint was reached."""
        self.names.append(name)
        if len(self.names) - 1 == self._until:
            ledger.write("crash", at=name)
            os.kill(os.getpid(), signal.SIGKILL)


def traced(work: Callable[[], None]) -> list[str]:
    """Do the work in this process, undisturbed; the failpoints it passed."""
    passed = Passed()
    with failpoints.installed(passed):
        work()
    return passed.names


def crashed(work: Callable[[], None], at: int | None = None) -> bool:
    """Do the work in a child that dies at failpoint number `at`; whether it died. A child that passes fewer does not.

    Raises:
        BrokenError: the child raised.
    """
    connections.close_all()
    child = os.fork()
    if child == 0:
        _live_and_die(work, at)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise BrokenError([entry["error"] for entry in ledger.read() if entry["what"] == "broke"])
    if died := os.WIFSIGNALED(status):
        ledger.write("died", who=child)
    catch_up()
    return died


def _live_and_die(work: Callable[[], None], at: int | None) -> None:
    """In the child: whatever happens, nothing of the parent's goes on here."""
    code = 1
    try:
        with failpoints.installed(Passed(at)):
            work()
        code = 0
    except BaseException:  # noqa: BLE001 - there is nobody above
        ledger.write("broke", error=traceback.format_exc())
    finally:
        os._exit(code)
