"""Activities: claim, run, record. The claim and the record are short transactions; nothing is locked in between.

Safe because: the attempt counts and is committed before the handler starts; only the holder of the newest token
records; a holder that lost its lease raises before it writes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from workflow_engine.domain.context import Context
from workflow_engine.domain.decisions import leases as decisions
from workflow_engine.domain.decisions.failure import decide_failure
from workflow_engine.domain.decisions.outcome import check_outcome, decide_outcome
from workflow_engine.domain.decisions.requests import carry_out_requested_cancel
from workflow_engine.domain.decisions.rules import Failure
from workflow_engine.domain.declarations import BoundStep
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Outcome, classify
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import PARKED
from workflow_engine.engine import mailbox
from workflow_engine.engine.blocks import no_block_left_open
from workflow_engine.engine.contexts import make_context
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.leases import HeldLease, new_owner
from workflow_engine.engine.reporting import ids, one_line
from workflow_engine.engine.turns import Advanced, Answer, Turn
from workflow_engine.engine.user_code import failure_of, gated
from workflow_engine.exceptions import LeaseLost
from workflow_engine.failpoints import around

logger = logging.getLogger("workflow_engine")


@dataclass(kw_only=True)
class Attempt:
    """Work claimed under a lease, to be run outside any transaction.

    `decide` writes what followed into the journal of the recording turn.
    """

    turn: Turn
    lease: HeldLease
    call: Callable[[], Any]
    check: Callable[[State, Outcome], None]
    succeed: Callable[[Journal, Outcome], None]
    fail: Callable[[Journal, Failure], None]

    def run(self) -> Advanced:
        """Call the handler, then record what came of it; a stale attempt records nothing."""
        started = time.perf_counter()
        failure, error, outcome = None, None, None
        try:
            with no_block_left_open(self.lease.step, self.lease.using):
                answer = self.call()
            outcome = gated(classify(answer), self.turn.journal.state)
            self.check(self.turn.journal.state, outcome)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever it is, it is the attempt's failure
            # LeaseLost too: whether it is so is asked of the row once more. A cancelled attempt may still report.
            failure, error = failure_of(raised), raised
        duration = timedelta(seconds=time.perf_counter() - started)

        def decide(journal: Journal) -> None:
            if failure is not None:
                self.fail(journal, failure)
            elif outcome is not None:
                self.succeed(journal, outcome)

        return self._record(decide, duration, error)

    def _record(self, decide: Callable[[Journal], None], duration: timedelta, error: BaseException | None) -> Advanced:
        try:
            with around("record"):
                return run_outermost(self.lease.using, partial(self._recorded, decide, duration, error))
        except LeaseLost as lost:
            return self._stale(lost)

    def _recorded(
        self, decide: Callable[[Journal], None], duration: timedelta, error: BaseException | None
    ) -> Advanced:
        locked = self.lease.locked()
        if locked.row.due_at is None or locked.row.due_at <= locked.now:
            raise self.lease.lost("it ran out before the result was recorded")
        turn = Turn.begin(locked, self.lease.using, self.turn.mode)
        turn.journal.attempt, turn.journal.duration = self.turn.journal.attempt, duration
        decide(turn.journal)
        carry_out_requested_cancel(turn.journal)
        settled = turn.journal.state.is_terminal or turn.journal.state.status in PARKED
        return turn.commit(mail=settled and mailbox.look_again(turn), exc=error)

    def _stale(self, lost: LeaseLost) -> Advanced:
        """Whoever took over goes on; this attempt writes and sends nothing."""
        row = self.turn.row
        logger.warning("%s %s: %s", one_line(row.workflow_name), row.pk, one_line(str(lost)), extra=ids(row))
        return Advanced(Answer.LOCKED, row.pk, self.lease.using)


def claim(turn: Turn) -> Advanced:
    """Commit an attempt of the current activity; it runs after that, outside."""
    bound, rules, owner = turn.step(), turn.rules(), new_owner()
    declared = bound.declaration
    lease = HeldLease(
        instance_id=turn.row.pk,
        using=turn.using,
        step=bound.key,
        token=turn.state.lease_token + 1,
        owner=owner,
        lease=declared.lease,
        timeout=declared.timeout,
    )
    decisions.claim_attempt(turn.journal, owner, min(declared.lease, declared.timeout), rules)
    state = turn.journal.state
    ctx = make_context(
        turn.row,
        state,
        turn.definition.context_class,
        now=turn.now,
        attempt=state.attempts,
        step=bound.key,
        visit=state.visit,
        deadline=turn.now + declared.timeout,
        lease=lease,
    )
    attempt = Attempt(
        turn=turn,
        lease=lease,
        call=partial(_call, bound, ctx, lease),
        check=lambda before, outcome: check_outcome(before, outcome, rules),
        succeed=lambda journal, outcome: decide_outcome(journal, outcome, rules),
        fail=lambda journal, failure: decide_failure(journal, failure, rules),
    )
    with around("claim"):
        advanced = turn.commit()
    advanced.outside = attempt.run
    return advanced


def _call(bound: BoundStep, ctx: Context[Any], lease: HeldLease) -> Any:
    with around("activity"):
        lease.check()
        return bound.run(ctx)
