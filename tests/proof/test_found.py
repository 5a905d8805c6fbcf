"""What the campaigns found, each as the shortest way to it. docs/RELIABILITY.md lists them."""

from __future__ import annotations

import pytest

from tests.proof import programs
from tests.proof.cases import fresh_world, judged
from tests.proof.clients import send, start
from tests.proof.crashing import interrupted
from tests.proof.deeds import transactional
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, until_quiet, work
from workflow_engine import Await, Context, Outcome

pytestmark = pytest.mark.django_db(transaction=True)


def stand_still_until_the_lease_is_over() -> None:
    """Time passes, and others do what is due then."""
    pass_time(LEASE * 1.1)
    until_quiet()


def test_an_activity_whose_process_stood_still_since_its_claim_does_not_begin_after_its_own_undo() -> None:
    with fresh_world():
        start(programs.OnlyOnce, "stopped")
        interrupted(work, "activity.before", stand_still_until_the_lease_is_over)
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"compensated"}))
    assert [entry["kind"] for entry in case.evidence.begun] == ["undo"]


def test_a_signal_that_comes_right_after_a_wait_began_beats_a_deadline_that_has_passed_already() -> None:
    with fresh_world():

        class Impatient(programs.Waiting):
            name = "proof_impatient"
            retry = programs.SIX

            def ask(self, ctx: Context) -> Outcome:
                with transactional(ctx, "body", 6):
                    return Await("yes", "no", timeout=0)

        instance = start(Impatient, "the start")
        interrupted(work, "hook.after", lambda: send(instance, "yes", "just in time"))
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"completed"}))
    assert case.evidence.tables.instances[str(instance)]["context"]["answer"] == "yes"
