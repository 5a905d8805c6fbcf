"""Who works on what: holds of embedded workers, and the claims that find out what kills processes.

Handing out never counts. Only an instance whose holder disappeared is suspect; whoever takes it next commits a claim
before running anything, and any orderly end takes that back. So only a process that died after its claim is counted.

A claim answers the suspicion: the row is not suspect any more, and until the claim's hold is over nobody else works on
it. A message that was delivered several times is one suspicion, and counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db.models import Case, F, Value, When

from workflow_engine import clock, conf
from workflow_engine.dispatch import dispatcher
from workflow_engine.domain.decisions.leases import decide_poison
from workflow_engine.engine import store
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.locking import lock
from workflow_engine.engine.scheduling import handed_out
from workflow_engine.engine.turns import Advanced, Answer, Mode, Turn
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance


@dataclass(slots=True, kw_only=True)
class _Held(Advanced):
    """The answer when a hold was written. Its end, counted from the lock's own microsecond, can't be another's."""

    until: datetime

    def was_committed(self) -> bool:
        """Whether this very hold stands in the row."""
        return WorkflowInstance.objects.using(self.using).filter(pk=self.instance_id, poll_at=self.until).exists()


def is_suspect(row: WorkflowInstance) -> bool:
    """Whether whoever works on it has to claim it first: its holder disappeared, or did so after a claim."""
    return row.suspect or row.recoveries > 0


def is_claimed(row: WorkflowInstance, now: datetime) -> bool:
    """Whether somebody has claimed it and has time left."""
    return row.recoveries > 0 and not row.suspect and row.poll_at is not None and row.poll_at > now


def hold(instance_id: UUID, using: str) -> Answer:
    """Take an instance for this driver: ADVANCED if that worked, else why not (LOCKED, GONE, PAUSED, ENDED).

    Two workers can't both succeed: the second one finds the first one's hold in the row it locks.
    """
    with around("hold"):
        return run_outermost(using, partial(_hold, instance_id, using)).answer


def release(instance_id: UUID, version: int, using: str) -> None:
    """Give up a hold without waiting for its end; void if somebody has written the row since."""
    now = clock.now(using)
    # A row that isn't due is given back because of its mailbox, and that can be acted on now.
    over = Case(When(due_at__lt=now, then=F("due_at")), default=Value(now))
    rows = WorkflowInstance.objects.using(using).filter(pk=instance_id, version=version, poll_at__isnull=False)
    rows.update(poll_at=handed_out(now) if dispatcher().pushes else over)


def claim_suspect(instance_id: UUID, using: str) -> Advanced:
    """Commit that this process works on a suspect instance now; at MAX_RECOVERIES it fails as poison instead."""
    with around("suspect"):
        return run_outermost(using, partial(_claim, instance_id, using))


def _hold(instance_id: UUID, using: str) -> Advanced:
    locked = lock(instance_id, using)
    if locked is None:
        exists = WorkflowInstance.objects.using(using).filter(pk=instance_id).exists()
        return Advanced(Answer.LOCKED if exists else Answer.GONE, instance_id, using)
    row, now = locked
    if row.is_terminal or row.paused:
        return Advanced(Answer.ENDED if row.is_terminal else Answer.PAUSED, instance_id, using)
    normal = row.poll_at is None or row.poll_at == row.due_at
    if not normal and row.poll_at is not None and row.poll_at > now:
        return Advanced(Answer.LOCKED, instance_id, using)
    # Neither normal nor held any more: a driver's hold or a job's grace ran out, and nobody reported back.
    until = now + conf.current().duration("HOLD")
    store.update(row, poll_at=until, suspect=row.suspect or not normal)
    return _Held(Answer.ADVANCED, instance_id, using, more=True, until=until)


def _claim(instance_id: UUID, using: str) -> Advanced:
    locked = lock(instance_id, using)
    if locked is None:
        return Advanced(Answer.LOCKED, instance_id, using)
    row, now = locked
    settings = conf.current()
    if is_claimed(row, now):
        return Advanced(Answer.LOCKED, instance_id, using)
    if not is_suspect(row):  # somebody got on with it meanwhile
        return Advanced(Answer.SUSPECT, instance_id, using, more=True)
    if row.has_lease and row.due_at is not None and row.due_at > now:
        # Its mail is all that can be looked at: no user code runs, so nothing can be found out by counting.
        return Advanced(Answer.SUSPECT, instance_id, using, more=True)
    if row.recoveries >= settings.MAX_RECOVERIES:
        turn = Turn.begin(locked, using, Mode(hold=True))
        decide_poison(turn.journal, row.recoveries)
        return turn.commit()
    until = now + settings.duration("HOLD")
    store.update(row, recoveries=row.recoveries + 1, suspect=False, poll_at=until)
    return _Held(Answer.SUSPECT, instance_id, using, more=True, until=until)
