"""Crashes and interruptions, at the n-th failpoint that is passed: a forked child kills itself there, or somebody else
gets his turn there.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection, connections

from tests.proof import ledger
from tests.proof.recovery import catch_up
from workflow_engine import failpoints

Work = Callable[[], object]


class BrokenError(AssertionError):
    """The child failed in another way than by dying."""


@dataclass(frozen=True)
class Point:
    """One passing of a failpoint. `outside`: no transaction was open, so that somebody else could have his turn."""

    name: str
    outside: bool


Place = int | str
"""The number of a failpoint that is passed; or a name, for the first one of it."""


class Passing:
    """Counts the failpoints that are passed, and does something at one of them."""

    def __init__(self, at: Place | None = None, then: Work | None = None) -> None:
        self.points: list[Point] = []
        self._at, self._then = at, then

    def __call__(self, name: str) -> None:
        """A failpoint was reached."""
        self.points.append(Point(name, not connection.in_atomic_block))
        if name == "suspect.after":
            ledger.write("suspected")
        if self._at in {len(self.points) - 1, name} and self._then is not None:
            self._at = None
            ledger.write("hit", place=name)
            with failpoints.installed(Passing()):
                self._then()


def traced(work: Work) -> list[Point]:
    """Do the work in this process, undisturbed; the failpoints it passed."""
    return interrupted(work, None, None)


def interrupted(work: Work, at: Place | None, by: Work | None) -> list[Point]:
    """Do the work in this process; at the failpoint `at` somebody else does `by` first, to its end."""
    passing = Passing(at, by)
    with failpoints.installed(passing):
        work()
    return passing.points


def crashed(work: Work, at: Place) -> bool:
    """Do the work in a child that dies at the failpoint `at`; whether it died. A child that passes fewer does not.

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


def kill_this_process() -> None:
    """What no handler sees coming."""
    os.kill(os.getpid(), signal.SIGKILL)


def _live_and_die(work: Work, at: Place) -> None:
    """In the child: whatever happens, nothing of the parent's goes on here."""
    code = 1
    try:
        interrupted(work, at, kill_this_process)
        code = 0
    except BaseException:  # noqa: BLE001 - there is nobody above
        ledger.write("broke", error=traceback.format_exc())
    finally:
        os._exit(code)
