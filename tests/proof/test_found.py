"""What the campaigns found, each as the shortest way to it. docs/RELIABILITY.md lists them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.proof import programs
from tests.proof.cases import fresh_world, judged
from tests.proof.clients import start
from tests.proof.crashing import interrupted, traced
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, until_quiet, work

pytestmark = pytest.mark.django_db(transaction=True)


def at(place: str, work: Callable[[], object], *, time: int = 0) -> int:
    """The number of the failpoint at which `work` passes `place` for the given time (0: the first)."""
    return [number for number, point in enumerate(traced(work)) if point.name == place][time]


def stand_still_until_the_lease_is_over() -> None:
    """Time passes, and others do what is due then."""
    pass_time(LEASE * 1.1)
    until_quiet()


def test_an_activity_whose_process_stood_still_since_its_claim_does_not_begin_after_its_own_undo() -> None:
    with fresh_world():
        start(programs.OnlyOnce, "undisturbed")
        begins = at("activity.before", work)
    with fresh_world():
        start(programs.OnlyOnce, "stopped")
        interrupted(work, begins, stand_still_until_the_lease_is_over)
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"compensated"}))
    assert [entry["kind"] for entry in case.evidence.begun] == ["undo"]
