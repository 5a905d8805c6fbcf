"""A database at rest: nothing that was due is left over. Invariant 9."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proof.evidence import Evidence, Violation
from tests.proof.folding import OVER, TERMINAL
from tests.proof.tables import Row


def nothing_due_is_left(evidence: Evidence) -> Iterator[Violation]:
    """Every live instance waits for something, and will be looked at when its time comes."""
    if not evidence.at_rest:
        return
    for key, row in evidence.tables.instances.items():
        if row["status"] in TERMINAL or row["paused"]:
            if row["poll_at"] is not None:
                yield Violation(9, f"{key} is {row['status']}, paused: {row['paused']}, and polled at {row['poll_at']}")
            continue
        yield from (Violation(9, f"{key}, {row['status']}, {text}") for text in _left_over(evidence, row))


def _left_over(evidence: Evidence, row: Row) -> Iterator[str]:
    if row["due_at"] is not None and row["due_at"] <= evidence.now:
        yield f"was due at {row['due_at']} and nothing was done"
    if row["poll_at"] != row["due_at"]:
        yield f"is due at {row['due_at']} and looked at at {row['poll_at']}"
    if row["due_at"] is None and row["status"] != "awaiting":
        yield "will never be due"
    if row["suspect"] or row["recoveries"]:
        yield f"is suspect ({row['suspect']}) after {row['recoveries']} recoveries"
    if row["lease_owner"]:
        yield f"has a lease of {row['lease_owner']}, and nobody works"


def no_mail_is_left(evidence: Evidence) -> Iterator[Violation]:
    """Everything in the mailbox was looked at, and what the instance waits for was given to it."""
    if not evidence.at_rest:
        return
    for number, mail in evidence.tables.mail.items():
        row = evidence.tables.instances.get(mail["instance_id"])
        if row is None:
            yield Violation(9, f"signal {number} is for an instance that is gone")
        elif mail["state"] == "pending":
            yield Violation(9, f"nobody has looked at signal {number}")
        elif mail["state"] == "buffered" and row["status"] in OVER:
            yield Violation(9, f"signal {number} is kept for an instance that is {row['status']}")
        elif mail["state"] == "buffered" and mail["kind"] != "signal":
            yield Violation(9, f"request {number} is kept and not carried out")
        elif mail["state"] == "buffered" and mail["name"] in row["awaiting_signals"] and not row["paused"]:
            yield Violation(9, f"signal {number} is kept, and its instance awaits it")


JUDGES = (nothing_due_is_left, no_mail_is_left)
