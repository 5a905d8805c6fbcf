"""The verbs: everything that starts, moves or ends an instance.

`start`, `signal`, `signal_subject`, `cancel`, `pause`, `resume` and `retry` join the caller's transaction and only
insert rows; `advance` and `drive` open transactions of their own.
"""

from __future__ import annotations

from workflow_engine.engine import advancing, claims, driving
from workflow_engine.engine.addressing import Addressed, database_of, load
from workflow_engine.engine.driving import Driven
from workflow_engine.engine.sending import cancel, pause, resume, retry, signal, signal_subject
from workflow_engine.engine.starting import start
from workflow_engine.engine.turns import Advanced, Answer, Mode

__all__ = [
    "Advanced",
    "Answer",
    "Driven",
    "advance",
    "cancel",
    "drive",
    "pause",
    "resume",
    "retry",
    "signal",
    "signal_subject",
    "start",
]


def advance(instance: Addressed, *, using: str | None = None) -> Advanced:
    """Take one turn of an instance now, in this process: at most one step, in a transaction of its own.

    For people and tests; workers drive. Doing nothing is an answer, not an error: see `Advanced.answer`.

    Raises:
        InstanceNotFoundError: there is no such instance.
        DatabaseError: the database had trouble for longer than the retries last.
        RuntimeError: the caller has a transaction open.
    """
    alias = database_of(instance, using)
    instance_id = load(instance, alias).pk
    advanced = advancing.advance(instance_id, alias, Mode())
    if advanced.answer != Answer.SUSPECT:
        return advanced
    claimed = claims.claim_suspect(instance_id, alias)
    return claimed if claimed.answer != Answer.SUSPECT else advancing.advance(instance_id, alias, Mode(claimed=True))


def drive(instance: Addressed, *, using: str | None = None) -> Driven:
    """Advance an instance now, in this process, until there is nothing it can do at once.

    Raises:
        InstanceNotFoundError: there is no such instance.
        RuntimeError: the caller has a transaction open.
    """
    alias = database_of(instance, using)
    return driving.drive(load(instance, alias).pk, alias)
