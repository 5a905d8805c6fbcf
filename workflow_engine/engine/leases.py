"""Leases: the right to do one piece of work outside any transaction, and to record what came of it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from workflow_engine import clock
from workflow_engine.engine.infrastructure import run_outermost
from workflow_engine.engine.locking import Locked, lock_waiting
from workflow_engine.engine.turns import Advanced, Answer
from workflow_engine.exceptions import LeaseLost
from workflow_engine.failpoints import around
from workflow_engine.models import WorkflowInstance


def new_owner() -> str:
    """A nonce that no other claim has: two attempts of one process are different owners."""
    return secrets.token_hex(16)


@dataclass
class HeldLease:
    """What an attempt holds from its claim to its record.

    `token` rises with every claim on the instance, `owner` is this claim's nonce; both must still stand in the row for
    anything to be written. `lease` is the longest silence, `timeout` the longest attempt, both from the claim on.
    The local deadline is measured from before the claim was sent, by the monotonic clock, so that it is never later
    than the row's.
    """

    instance_id: UUID
    using: str
    step: str
    token: int
    owner: str
    lease: timedelta
    timeout: timedelta
    sent_at: float = field(default_factory=clock.monotonic)
    started_at: float = field(default_factory=clock.monotonic)

    def remaining(self) -> timedelta:
        """How long it lasts without a heartbeat; zero or less means that it is lost."""
        silence = self.lease.total_seconds() - (clock.monotonic() - self.sent_at)
        attempt = self.timeout.total_seconds() - (clock.monotonic() - self.started_at)
        return timedelta(seconds=min(silence, attempt))

    def check(self) -> None:
        """Before the handler is called: a process that stood still since its claim must not begin now.

        Raises:
            LeaseLost: the lease ran out.
        """
        if self.remaining() <= timedelta():
            raise self.lost("it ran out before the attempt began")

    def heartbeat(self) -> None:
        """Renew the lease.

        Raises:
            LeaseLost: it ran out or was taken over, the attempt's timeout is spent, or a cancellation is requested.
        """
        if self.remaining() <= timedelta():
            raise self.lost("it ran out before this heartbeat")
        sent_at = clock.monotonic()
        with around("heartbeat"):
            run_outermost(self.using, self._renew)
        self.sent_at = sent_at

    def holds(self, row: WorkflowInstance) -> bool:
        """Whether the row still says that this attempt is the one."""
        return row.lease_token == self.token and row.lease_owner == self.owner

    def lost(self, reason: str) -> LeaseLost:
        """The error that tells the handler to stop."""
        return LeaseLost(self.instance_id, self.step, reason)

    def locked(self) -> Locked:
        """Lock the row to write this attempt's news.

        Raises:
            LeaseLost: another claim, or none, stands in the row; or the lease ran out.
        """
        found = lock_waiting(self.instance_id, self.using)
        if found is None:
            raise self.lost("the instance is gone")
        if not self.holds(found.row):
            raise self.lost("it was taken over, or its attempt was given up")
        return found

    def _renew(self) -> Advanced:
        row, now = self.locked()
        if row.due_at is None or row.due_at <= now:
            raise self.lost("it ran out before this heartbeat")
        if row.cancel_requested is not None:
            raise self.lost("the instance is to be cancelled")
        until = min(now + self.lease, now + self.remaining_attempt())
        rows = WorkflowInstance.objects.using(self.using).filter(pk=row.pk, lease_token=self.token)
        rows.update(due_at=until, poll_at=None if row.paused else until)
        return Advanced(Answer.ADVANCED, self.instance_id, self.using)

    def remaining_attempt(self) -> timedelta:
        """How much of the attempt's timeout is left."""
        return self.timeout - timedelta(seconds=clock.monotonic() - self.started_at)
