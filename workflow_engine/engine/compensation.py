"""Compensation: one recorded entry at a time, outside lock and transaction, or inside the one that records it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from workflow_engine.domain.context import Context, Lease
from workflow_engine.domain.decisions import undo
from workflow_engine.domain.decisions.failure import next_undo
from workflow_engine.domain.decisions.rules import Failure
from workflow_engine.domain.declarations import BoundStep
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Outcome
from workflow_engine.engine import steps
from workflow_engine.engine.activities import Attempt
from workflow_engine.engine.contexts import make_context
from workflow_engine.engine.leases import HeldLease, new_owner
from workflow_engine.engine.turns import Advanced, Turn
from workflow_engine.engine.user_code import Handler
from workflow_engine.failpoints import around

Entry = Mapping[str, Any]


def undo_next(turn: Turn) -> Advanced:
    """Undo the latest entry that is not undone yet; the instance is locked and due."""
    entry = next_undo(turn.state)
    if entry is None:  # a retry() found nothing left
        undo.settle(turn.journal)
        return turn.commit()
    bound = turn.step(entry["step"])
    if turn.state.lease_owner:
        return _lost_undo(turn, entry, bound)
    return _undo_here(turn, entry, bound) if bound.compensation.atomic else _claim(turn, entry, bound)


def _lost_undo(turn: Turn, entry: Entry, bound: BoundStep) -> Advanced:
    """The lease of an undo ran out: a lost attempt, and undos are at-least-once, so it is tried again."""
    turn.journal.attempt = entry.get("undo_attempts", 0)
    failure = Failure(type="LeaseExpired", message="the undo did not report within its lease")
    undo.decide_undo_failure(turn.journal, entry, failure, bound.compensation.retry)
    return turn.commit()


def _undo_here(turn: Turn, entry: Entry, bound: BoundStep) -> Advanced:
    """`atomic=True`: the undo's ORM writes commit together with its record, exactly once."""
    attempt = entry.get("undo_attempts", 0) + 1
    ctx = _context(turn, entry, attempt, None)
    handler = Handler(
        step=bound.key,
        call=partial(_call, bound, ctx, entry, None),
        check=lambda outcome: None,
        succeed=partial(_undone, entry),
        fail=partial(_failed, entry, bound),
    )
    return steps.run(turn, handler, attempt=attempt)


def _claim(turn: Turn, entry: Entry, bound: BoundStep) -> Advanced:
    options, owner = bound.compensation, new_owner()
    lease = HeldLease(
        instance_id=turn.row.pk,
        using=turn.using,
        step=bound.key,
        token=turn.state.lease_token + 1,
        owner=owner,
        lease=options.lease,
        timeout=options.timeout,
    )
    undo.claim_undo(turn.journal, entry, owner, min(options.lease, options.timeout))
    ctx = _context(turn, entry, turn.journal.attempt, lease)
    attempt = Attempt(
        turn=turn,
        lease=lease,
        call=partial(_call, bound, ctx, entry, lease),
        check=lambda state, outcome: None,
        succeed=partial(_undone, entry),
        fail=partial(_failed, entry, bound),
    )
    with around("claim"):
        advanced = turn.commit()
    advanced.outside = attempt.run
    return advanced


def _context(turn: Turn, entry: Entry, attempt: int, lease: Lease | None) -> Context[Any]:
    return make_context(
        turn.row,
        turn.journal.state,
        turn.definition.context_class,
        now=turn.now,
        attempt=attempt,
        step=entry["step"],
        visit=entry["visit"],
        undo=True,
        lease=lease,
    )


def _call(bound: BoundStep, ctx: Context[Any], entry: Entry, lease: HeldLease | None) -> None:
    """What an undo returns means nothing."""
    with around("undo"):
        if lease is not None:
            lease.check()
        # A copy: what the handler does to it must not get into the row.
        bound.compensate(ctx, deepcopy(entry.get("result")))


def _undone(entry: Entry, journal: Journal, outcome: Outcome) -> None:  # noqa: ARG001 - it has no outcome
    undo.decide_undone(journal, entry)


def _failed(entry: Entry, bound: BoundStep, journal: Journal, failure: Failure) -> None:
    undo.decide_undo_failure(journal, entry, failure, bound.compensation.retry)
