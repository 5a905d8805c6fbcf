"""What the campaigns found, each as the shortest way to it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from tests.proof import programs
from tests.proof.cases import fresh_world, judged
from tests.proof.clients import request, send, start
from tests.proof.crashing import crashed, interrupted
from tests.proof.deeds import interrupt_with, transactional
from tests.proof.faults import Fate, commits_meet
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, until_quiet, work
from workflow_engine import Await, Context, Outcome, engine
from workflow_engine.domain.registry import registry
from workflow_engine.engine.claims import hold
from workflow_engine.engine.driving import drive
from workflow_engine.testing import reload

HOLD = timedelta(seconds=61)

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


def test_a_suspect_whose_message_was_delivered_many_times_is_claimed_once_and_no_poison() -> None:
    with fresh_world(MAX_RECOVERIES=2):
        instance = start(programs.Ladder, "the start")
        crashed(work, "handler.before")
        pass_time(HOLD)

        def deliver(more: int = 4) -> None:
            """Each delivery finds the one before it between its claim and its work."""
            following = partial(deliver, more - 1) if more else None
            interrupted(partial(drive, instance, "default"), "suspect.after", following)

        hold(instance, "default")
        deliver()
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"completed"}))


def test_a_suspect_that_nobody_here_can_run_is_still_suspect_for_others() -> None:
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        crashed(work, "handler.before")
        pass_time(HOLD)
        crashed(work, "handler.before")
        pass_time(HOLD)
        with registry.isolated():
            registry._classes.clear()
            drive(instance, "default")
        row = reload(instance)
        assert (row.suspect, row.recoveries) == (True, 1)
        until_quiet()
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"completed"}))


def test_processes_that_die_beside_a_live_lease_do_not_make_it_poison() -> None:
    with fresh_world(MAX_RECOVERIES=1, HOLD=5):
        instance = start(programs.Beside, "the start")

        def die_beside() -> None:
            """Mail comes, and those who want to look at it die."""
            send(instance, "whatever", "mail")
            for place in ("hold.after", "suspect.after", "suspect.after"):
                assert crashed(work, place)
                pass_time(timedelta(seconds=6))
            work()

        interrupt_with(die_beside)
        until_quiet()
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"awaiting"}))


def test_an_instance_whose_mail_kills_every_process_is_called_poison_though_it_is_not_due() -> None:
    """No bug of the engine's: what it ends as is no start of anything, and the checker must not take it for one."""
    with fresh_world(MAX_RECOVERIES=1):
        instance = start(programs.Approvals, "the start")
        work()
        send(instance, "approved", "the deadly one")
        for place in ("handler.before", "handler.before"):
            assert crashed(work, place)
            pass_time(HOLD)
        work()
        case = judged()
    assert (case.violations, case.ends) == ([], frozenset({"failed"}))


def test_an_instance_that_a_resume_made_due_is_no_suspect_to_whoever_takes_it() -> None:
    """Else the first process that dies on it is counted already, and others are told that one had disappeared."""
    with fresh_world():
        instance = start(programs.Ladder, "the start")
        request("pause", instance)
        work()
        request("resume", instance)
        engine.advance(instance)
        row = reload(instance)
        assert row.poll_at == row.due_at
        hold(instance, "default")
        assert not reload(instance).suspect


@pytest.mark.parametrize("key", [None, "the start"])
def test_of_two_tries_of_a_start_that_broke_off_the_one_that_was_carried_out_is_told(key: str | None) -> None:
    """Both have the same id: what tells them apart is the time."""
    fates = iter([Fate.REQUEST_LOST, Fate.ANSWER_LOST])
    with fresh_world():
        with commits_meet(lambda: next(fates, Fate.WELL)):
            instance = engine.start(programs.Ladder, idempotency_key=key)
        case = judged(at_rest=False)
        assert instance.created_at == reload(instance).created_at
    assert case.violations == []
    assert [entry["kind"] for entry in case.evidence.entries("told")] == ["workflow_started"]
