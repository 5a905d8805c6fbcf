"""When the scheduler looks at an instance next."""

from __future__ import annotations

from datetime import datetime, timedelta

from workflow_engine import conf
from workflow_engine.dispatch import NO_DELAY, dispatcher


def handed_out(due_at: datetime) -> datetime:
    """poll_at of an instance that is handed to the dispatcher for that moment: after the grace that a pushed job gets;
    then itself where workers fetch.
    """
    return due_at + conf.current().duration("GRACE") if dispatcher().pushes else due_at


def message_delay(due_at: datetime | None, now: datetime) -> timedelta | None:
    """How long a message for that moment has to wait; None if it is tick's to send.

    What is due before the next tick is not: it would be late by up to a TICK_INTERVAL.
    """
    if due_at is None or not dispatcher().pushes or due_at > now + conf.current().duration("TICK_INTERVAL"):
        return None
    return max(due_at - now, NO_DELAY)
