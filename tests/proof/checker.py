"""The checker: reads the tables and the ledger, and reports what is wrong, by the number of the invariant.

It shares no code with the engine's decisions: the fold, the table of transitions and the rules are told once more, in
`folding` and `judges`. test_checker.py proves that it sees: it corrupts a clean database in every way it should notice.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from tests.proof import ledger, tables
from tests.proof.evidence import Evidence, Judge, Violation
from tests.proof.judges import deeds, histories, mail, rest, rows
from tests.proof.tables import Tables
from workflow_engine import conf

JUDGES: tuple[Judge, ...] = (*rows.JUDGES, *histories.JUDGES, *mail.JUDGES, *deeds.JUDGES, *rest.JUDGES)


def check(
    using: str = "default",
    *,
    before: Tables | None = None,
    at_rest: bool = True,
    connection: BaseDatabaseWrapper | None = None,
) -> list[Violation]:
    """Read everything and judge it. For the arguments see `collect`."""
    return judge(collect(using, before=before, at_rest=at_rest, connection=connection))


def collect(
    using: str = "default",
    *,
    before: Tables | None = None,
    at_rest: bool = True,
    connection: BaseDatabaseWrapper | None = None,
) -> Evidence:
    """Read everything.

    Args:
        using: the database alias.
        before: an earlier reading, to find what may not have changed since.
        at_rest: all that was due has run, so nothing may be left over.
        connection: to read through, instead of an own one.
    """
    return Evidence(
        tables=tables.read(using, connection),
        ledger=ledger.read(),
        now=datetime.fromtimestamp(ledger.now(), UTC),
        before=before,
        max_recoveries=conf.current().MAX_RECOVERIES,
        at_rest=at_rest,
    )


def judge(evidence: Evidence) -> list[Violation]:
    """What every judge says, in the order of the invariants."""
    return sorted(violation for each in JUDGES for violation in each(evidence))
