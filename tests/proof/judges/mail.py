"""The mailbox: invariant 3, and the part of 4 that only senders can witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from tests.proof.evidence import Evidence, Violation
from tests.proof.folding import OVER, Moment
from tests.proof.tables import Row

MOVES = {
    "pending": {"buffered", "consumed", "discarded", "rejected"},
    "buffered": {"consumed", "discarded"},
}
KEPT = {"pending", "buffered"}


def nothing_is_lost(evidence: Evidence) -> Iterator[Violation]:
    """What its sender knows to be committed is there, once, and moves only forwards."""
    mail = evidence.tables.mail
    for entry in evidence.entries("sent"):
        if entry["mail"] not in mail and entry["instance"] in evidence.tables.instances:
            yield Violation(3, f"signal {entry['mail']} was committed, and is gone")
    calls = Counter(_call(row) for row in mail.values())
    for call, times in calls.items():
        if call is not None and times > 1:
            yield Violation(3, f"the call {call!r} left {times} signals")
    for number, row in (evidence.before.mail if evidence.before else {}).items():
        if row["instance_id"] not in evidence.tables.instances:
            continue
        state = mail[number]["state"] if number in mail else "gone"
        if state != row["state"] and state not in MOVES.get(row["state"], set()):
            yield Violation(3, f"signal {number} went from {row['state']} to {state}")


def each_is_consumed_once(evidence: Evidence) -> Iterator[Violation]:
    """The row says consumed if and only if the history tells of it, once, in that visit."""
    mail = evidence.tables.mail
    taken: Counter[int] = Counter()
    for key, moments in evidence.moments.items():
        for moment in moments:
            number = _taken(moment.event)
            if number is not None:
                taken[number] += 1
                wrong = _wrong_about(moment, key, mail.get(number))
                if wrong:
                    yield Violation(3, f"{key}, event {moment.event['seq']}: signal {number} {wrong}")
    for number, times in taken.items():
        if times > 1:
            yield Violation(3, f"signal {number} was received {times} times")
    for number, row in mail.items():
        if row["state"] == "consumed" and not taken[number]:
            yield Violation(3, f"signal {number} is consumed, and no event tells of it")


def _wrong_about(moment: Moment, key: str, row: Row | None) -> str | None:
    if row is None or row["instance_id"] != key:
        return "is none of its own"
    if moment.kind == "request_denied":
        return None if row["state"] == "rejected" else f"was denied and is {row['state']}"
    received = (row["state"], row["consumed_visit"]) == ("consumed", moment.before["visit"])
    return None if received else f"was received, and is {row['state']} by visit {row['consumed_visit']}"


def the_older_goes_first(evidence: Evidence) -> Iterator[Violation]:
    """Of two that the wait would take, the one with the lower number, if it was committed by then. A handler that is
    called again gets the same one, even if an older one has become visible.
    """
    for key, moments in evidence.moments.items():
        mailbox = [row for row in evidence.tables.mail.values() if row["instance_id"] == key]
        gone: set[int] = set()
        for moment in moments:
            number = _chosen(moment)
            if number is None:
                continue
            again = moment.before["handling"]
            if again and again != f"signal:{number}":
                yield Violation(3, f"signal {number} was taken while the handler of {again} was to be called again")
            for row in [] if again else mailbox:
                older = row["id"] < number and row["id"] not in gone and row["state"] in KEPT | {"consumed"}
                if older and _takes(moment.before, row) and _visible(evidence, row, moment.event["created_at"]):
                    yield Violation(3, f"signal {number} was taken before signal {row['id']}")
            if moment.kind == "signal_received":
                gone.add(number)


def a_visible_signal_beats_the_timeout(evidence: Evidence) -> Iterator[Violation]:
    """What was committed before the wait was looked at goes before the deadline."""
    for key, moments in evidence.moments.items():
        mailbox = [row for row in evidence.tables.mail.values() if row["instance_id"] == key]
        gone: set[int] = set()
        for before, event, _ in moments:
            if event["kind"] == "signal_received":
                gone.add(event["data"]["signal_id"])
            if event["kind"] != "step_timed_out" or before["handling"]:
                continue
            for row in mailbox:
                sure = evidence.committed.get(row["id"])
                there = sure is not None and sure < event["created_at"]
                if there and row["id"] not in gone and _takes(before, row) and row["state"] != "rejected":
                    yield Violation(4, f"{key} timed out although signal {row['id']} was there")


def refusals_have_reasons(evidence: Evidence) -> Iterator[Violation]:
    """Discarded: the instance had ended. Rejected: the history tells of the denial."""
    for number, row in evidence.tables.mail.items():
        instance = evidence.tables.instances.get(row["instance_id"])
        if row["state"] in {"discarded", "rejected"} and not row["reason"]:
            yield Violation(3, f"signal {number} is {row['state']} for no reason")
        if row["state"] == "discarded" and instance and instance["status"] not in OVER:
            yield Violation(3, f"signal {number} is discarded, and its instance is {instance['status']}")


def _chosen(moment: Moment) -> int | None:
    """The signal that was given to its handler, whether that succeeded or is to be called again."""
    handling = moment.after["handling"]
    if moment.kind == "signal_received":
        return int(moment.event["data"]["signal_id"])
    if moment.kind == "step_failed" and handling.startswith("signal:"):
        return int(handling.removeprefix("signal:"))
    return None


def _takes(state: Row, row: Row) -> bool:
    return row["kind"] == "signal" and row["name"] in state["awaiting_signals"]


def _visible(evidence: Evidence, row: Row, moment: datetime) -> bool:
    """Whether the row was committed by then: as its sender knows, or else as the row itself says."""
    return (evidence.committed.get(row["id"]) or row["received_at"]) < moment


def _taken(event: Row) -> int | None:
    """The row of the mailbox that an event answers: a signal's handler, or a request that was carried out or denied."""
    if event["kind"] == "signal_received":
        return int(event["data"]["signal_id"])
    asked = {"workflow_paused", "workflow_resumed", "workflow_retried", "request_denied", "cancel_requested"}
    cancels = {"workflow_compensating", "workflow_cancelled"}
    if event["kind"] not in asked | cancels or not event["trigger"].startswith("signal:"):
        return None
    if event["kind"] == "workflow_compensating" and event["data"].get("ends_as") != "cancelled":
        return None
    return int(event["trigger"].removeprefix("signal:"))


def _call(row: Row) -> str | None:
    data = row["data"]
    return data.get("call") if isinstance(data, dict) else None


JUDGES = (
    nothing_is_lost,
    each_is_consumed_once,
    the_older_goes_first,
    a_visible_signal_beats_the_timeout,
    refusals_have_reasons,
)
