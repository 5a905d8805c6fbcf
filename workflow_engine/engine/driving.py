"""Driving: the same instance, turn after turn, until it parks or others should have a go."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from workflow_engine import conf
from workflow_engine.dispatch import wake
from workflow_engine.engine import claims
from workflow_engine.engine.advancing import advance, back_off
from workflow_engine.engine.infrastructure import is_infrastructure
from workflow_engine.engine.turns import Advanced, Answer, Mode
from workflow_engine.exceptions import StaleWriteError
from workflow_engine.models import WorkflowSignal

logger = logging.getLogger("workflow_engine")

_ELSEWHERE = frozenset({Answer.LOCKED, Answer.GONE, Answer.HANDED_OVER})
"""Answers after which the mailbox is somebody else's matter."""

A_MOMENT = (0.01, 0.02, 0.05, 0.1)
"""Seconds between tries. Who only looks keeps a lock for milliseconds. Waiting much longer would let the messages that
come for one instance during a long step of it occupy all workers.
"""


@dataclass(frozen=True, slots=True)
class Driven:
    """What a drive did: how many turns changed something, and the answer of the last one."""

    turns: int
    answer: Answer


def never() -> bool:
    """For callers that can't be asked to stop."""
    return False


def drive(instance_id: UUID, using: str, *, stop: Callable[[], bool] = never, queue: str | None = None) -> Driven:
    """Advance the instance until there is nothing it can do now, within the budget of DRIVE_STEPS turns.

    After the last commit the mailbox is looked at once more: whoever found the row locked meanwhile has gone away
    relying on that. A step that asks for another queue is handed over to it.

    Args:
        instance_id: of the instance.
        using: the database alias.
        stop: asked between turns; True gives the instance back at once.
        queue: that this driver works for, "" being the default one; None for any.
    """
    mode, turns = Mode(hold=True, queue=queue), 0
    try:
        while True:
            advanced = _turn(instance_id, using, mode)
            turns += advanced.answer == Answer.ADVANCED
            mode.mail = advanced.mail
            if advanced.more:
                if stop() or turns >= conf.current().DRIVE_STEPS or not mode.serves(advanced.queue):
                    _give_back(advanced)
                    break
            elif advanced.answer in _ELSEWHERE or not _has_pending(instance_id, using):
                break
            else:
                mode.mail = True
    except (DatabaseError, InterfaceError, StaleWriteError) as error:
        return _give_up(instance_id, using, turns, error)
    return Driven(turns, advanced.answer)


def drive_patiently(
    instance_id: UUID,
    using: str,
    *,
    stop: Callable[[], bool] = never,
    queue: str | None = None,
    pauses: Iterable[float] = A_MOMENT,
    wait: Callable[[float], object] = time.sleep,
) -> Driven:
    """Like `drive`, for who alone will come for the instance: a row found locked is tried again a few times.

    Many lock a row for a moment and drive nothing: a worker that only sees that it is held, a heartbeat, a tick, a
    message that is early. Walking away from them would leave the instance, due and held, until its hold or the grace of
    its message runs out. Who keeps the lock for longer takes a turn, and looks at the instance again afterwards.

    Args:
        instance_id: of the instance.
        using: the database alias.
        stop: as for `drive`.
        queue: as for `drive`.
        pauses: so many seconds before each further try.
        wait: for so many seconds; a true answer ends the patience.
    """
    driven = drive(instance_id, using, stop=stop, queue=queue)
    turns = driven.turns
    for pause in pauses:
        if driven.answer != Answer.LOCKED or wait(pause):
            break
        driven = drive(instance_id, using, stop=stop, queue=queue)
        turns += driven.turns
    return Driven(turns, driven.answer)


def _turn(instance_id: UUID, using: str, mode: Mode) -> Advanced:
    advanced = advance(instance_id, using, mode)
    if advanced.answer != Answer.SUSPECT:
        return advanced
    claimed = claims.claim_suspect(instance_id, using)
    if claimed.answer != Answer.SUSPECT:
        return claimed
    return advance(instance_id, using, replace(mode, claimed=True))


def _give_back(advanced: Advanced) -> None:
    claims.release(advanced.instance_id, advanced.version, advanced.using)
    wake(advanced.instance_id, queue=advanced.queue, using=advanced.using)


def _give_up(instance_id: UUID, using: str, turns: int, error: Exception) -> Driven:
    """The database's trouble lasts: leave the instance as it is for a while. Any other error is a bug and raises."""
    if not isinstance(error, StaleWriteError) and not is_infrastructure(error):
        raise error
    logger.warning(
        "Database trouble with workflow instance %s; it is tried again later",
        instance_id,
        exc_info=error,
        extra={"workflow_instance_id": str(instance_id)},
    )
    try:
        back_off(instance_id, using)
    except (DatabaseError, InterfaceError):
        logger.warning("The database could not even note that; the hold of %s runs out by itself", instance_id)
    return Driven(turns, Answer.DATABASE_TROUBLE)


def _has_pending(instance_id: UUID, using: str) -> bool:
    return WorkflowSignal.objects.using(using).filter(instance_id=instance_id).pending().exists()
