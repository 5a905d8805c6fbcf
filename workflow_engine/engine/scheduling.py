"""When the scheduler looks at an instance next."""

from __future__ import annotations

from datetime import datetime

from workflow_engine import conf
from workflow_engine.dispatch import dispatcher


def handed_out(now: datetime) -> datetime:
    """poll_at of an instance that is due and handed to the dispatcher: after the grace that a pushed job gets; at
    once where workers fetch.
    """
    return now + conf.current().duration("GRACE") if dispatcher().pushes else now
