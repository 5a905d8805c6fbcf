"""The invariants that tables alone can show, one function each, carrying its number.

Each function yields what is wrong. `now` is what was read; `before`, if given, an earlier reading: then what may not
change between two readings is checked too. Readings must be of a database at rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.model.reading import read
from tests.model.replay import START, Row, Tables, text

__all__ = ["INVARIANTS", "assert_hold", "read"]

Check = Callable[[Tables, "Tables | None"], Iterator[str]]

MOVES = {
    "pending": {"in_progress", "awaiting", "sleeping", "compensating", "completed", "failed", "cancelled"},
    "in_progress": {"awaiting", "sleeping", "compensating", "completed", "failed", "cancelled"},
    "awaiting": {"in_progress", "sleeping", "compensating", "completed", "failed", "cancelled"},
    "sleeping": {"in_progress", "compensating", "completed", "failed", "cancelled"},
    "compensating": {"compensated", "failed", "cancelled"},
    "failed": {"in_progress", "awaiting", "compensating"},
}
MAIL_MOVES = {
    "pending": {"pending", "buffered", "consumed", "discarded", "rejected"},
    "buffered": {"buffered", "consumed", "discarded"},
}
FORWARD = {
    "step_started",
    "step_completed",
    "step_failed",
    "step_timed_out",
    "signal_received",
    "workflow_awaiting",
    "workflow_slept",
    "workflow_completed",
}
UNDOING = {"compensation_started", "step_compensated", "compensation_attempt_failed", "compensation_failed"}
OVER = {"completed", "compensated", "cancelled"}


def assert_hold(now: Tables, before: Tables | None = None) -> None:
    """Every invariant, at once; the message lists all that is wrong."""
    wrong = [f"invariant {number}: {text}" for number, check in INVARIANTS.items() for text in check(now, before)]
    assert not wrong, "\n".join(wrong)


def invariant_2(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """History is gap-free, its transitions are legal, and folding it gives the row."""
    for key, row in now.instances.items():
        history = now.events[key]
        if [event["seq"] for event in history] != list(range(1, row["last_seq"] + 1)):
            yield f"{key} has events {[event['seq'] for event in history]}, last_seq is {row['last_seq']}"
        for old, event, new in now.moments[key]:
            if new["status"] != old["status"] and new["status"] not in MOVES.get(old["status"], set()):
                yield f"{key} went from {old['status']} to {new['status']} in event {event['seq']}"
        folded = now.moments[key][-1].after if history else START
        for name in START:
            # The end of a lease is moved by heartbeats, which leave no event.
            same = text(row[name]) == text(folded[name]) or (name == "due_at" and row["lease_owner"])
            if not same:
                yield f"{key}.{name} is {row[name]!r}, its history says {folded[name]!r}"
    for key in now.events.keys() - now.instances.keys():
        yield f"{key} is gone, its history is not"


def invariant_3(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """A committed signal is consumed at most once and never lost; the older of two goes first.

    The order is checked by id: of senders that commit one after the other, as a database at rest has seen them.
    """
    for number, row in (before.signals if before else {}).items():
        if row["instance_id"] not in now.instances:
            continue
        if number not in now.signals:
            yield f"signal {number} is lost"
        elif (state := now.signals[number]["state"]) not in MAIL_MOVES.get(row["state"], {row["state"]}):
            yield f"signal {number} went from {row['state']} to {state}"
    for number, row in now.signals.items():
        if row["state"] in {"discarded", "rejected"} and not row["reason"]:
            yield f"signal {number} is {row['state']} without a reason"
    for key, row in now.instances.items():
        yield from _consumption(now, key)
        for mail in now.mailbox(key):
            if row["status"] in OVER and mail["state"] == "buffered":
                yield f"signal {mail['id']} is kept for an instance that is {row['status']}"


def _consumption(now: Tables, key: Any) -> Iterator[str]:
    mailbox = now.mailbox(key)
    first_taken: dict[int, int] = {}
    for old, event, _ in now.moments[key]:
        if event["kind"] != "signal_received":
            continue
        number, again = event["data"]["signal_id"], event["data"]["signal_id"] in first_taken
        mail = now.signals.get(number)
        if mail is None:
            yield f"signal {number} was received and is gone"
            continue
        if mail["state"] != "consumed" or (mail["consumed_step"], mail["consumed_visit"]) != (
            event["step"],
            event["visit"],
        ):
            yield f"signal {number} was received by {event['step']}, visit {event['visit']}, but its row says otherwise"
        if again and old["handling"] != f"signal:{number}":
            yield f"signal {number} was received twice"
        first_taken.setdefault(number, event["seq"])
        for other in mailbox:
            waits = other["kind"] == "signal" and other["name"] in old["awaiting_signals"] and other["id"] < number
            if waits and other["state"] in {"pending", "buffered", "consumed"} and other["id"] not in first_taken:
                yield f"signal {number} was taken before signal {other['id']}"
    for mail in mailbox:
        if mail["kind"] == "signal" and mail["state"] == "consumed" and mail["id"] not in first_taken:
            yield f"signal {mail['id']} is consumed, but no event tells of it"


def invariant_4(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """Signal or timeout: exactly one wins a visit's wait. A signal that is there beats the timeout."""
    for key, moments in now.moments.items():
        winners: list[str] = []
        taken: set[int] = set()
        for old, event, new in moments:
            if event["kind"] == "workflow_awaiting" or new["visit"] != old["visit"]:
                winners = []
            if event["kind"] == "signal_received":
                winners.append(f"signal {event['data']['signal_id']}")
                taken.add(event["data"]["signal_id"])
            elif event["kind"] == "step_timed_out":
                winners.append("timeout")
                for mail in now.mailbox(key) if not old["handling"] else ():
                    awaited = mail["kind"] == "signal" and mail["name"] in old["awaiting_signals"]
                    if awaited and mail["id"] not in taken and mail["received_at"] < event["created_at"]:
                        yield f"{key}: the timeout won in event {event['seq']}, and signal {mail['id']} was there"
            if len(set(winners)) > 1:
                yield f"{key}: {', '.join(winners)} ended the same wait"


def invariant_5(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """One recorded result per visit, by the holder of the newest lease token."""
    for key, moments in now.moments.items():
        completed = Counter(event["visit"] for _, event, _ in moments if event["kind"] == "step_completed")
        for visit, times in completed.items():
            if times > 1:
                yield f"{key}: visit {visit} completed {times} times"
        for old, event, new in moments:
            claims = event["kind"] in {"step_started", "compensation_started"}
            if new["lease_token"] - old["lease_token"] != claims:
                yield f"{key}: {event['kind']} moved the lease token from {old['lease_token']} to {new['lease_token']}"


def invariant_6(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """Two live leases on one instance never overlap, and an undo never runs beside one."""
    for key, moments in now.moments.items():
        for old, event, new in moments:
            if old["lease_owner"] and new["lease_owner"] not in {"", old["lease_owner"]}:
                yield f"{key}: {event['kind']} took over a lease that was not over"
            if old["lease_owner"] and event["kind"] == "workflow_compensating":
                yield f"{key}: the undo began beside a lease"


def invariant_7(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """Undos run in reverse order, one recorded as done never runs again, and no forward step follows."""
    for key, moments in now.moments.items():
        undoing = False
        for old, event, _ in moments:
            undoing = undoing or event["kind"] == "workflow_compensating"
            if undoing and event["kind"] in FORWARD:
                yield f"{key}: {event['kind']} of {event['step']} follows an undo"
            if event["kind"] not in UNDOING:
                continue
            (entry,) = (entry for entry in old["compensation_stack"] if entry["visit"] == event["visit"])
            if entry.get("undo") == "done":
                yield f"{key}: {event['kind']} of visit {event['visit']}, which is undone already"
            if entry != _next_to_undo(old):
                yield f"{key}: {event['kind']} of visit {event['visit']} before its turn"


def _next_to_undo(state: Row) -> Row | None:
    stack: list[Row] = state["compensation_stack"]
    left = (entry for entry in reversed(stack) if entry["state"] != "known_failure" and "undo" not in entry)
    return next(left, None)


def invariant_8(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """One instance per idempotency key; what it was started with never changes."""
    keys = Counter(
        (row["tenant"], row["workflow_name"], row["idempotency_key"])
        for row in now.instances.values()
        if row["idempotency_key"] is not None
    )
    for key, times in keys.items():
        if times > 1:
            yield f"{times} instances have the key {key}"
    fixed = ("workflow_name", "tenant", "idempotency_key", "key_hash", "fingerprint", "input", "subject_type")
    for instance_id, old in (before.instances if before else {}).items():
        new = now.instances.get(instance_id, old)
        for name in fixed:
            if text(old[name]) != text(new[name]):
                yield f"{instance_id}.{name} was {old[name]!r} and is {new[name]!r}"


def invariant_11(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """Recorded attempts stay within the policy per arming, and nothing starts before it is due.

    Parking, entering a step and retry() arm anew.
    """
    for key, moments in now.moments.items():
        attempts: Counter[tuple[str, str, int]] = Counter()
        allowed = None
        for old, event, _ in moments:
            kind, step = event["kind"], event["step"]
            if kind in {"workflow_awaiting", "workflow_slept", "workflow_retried"}:
                attempts.clear()
            if counted := _counted(event):
                attempts[counted, step, event["visit"]] += 1
                tried = attempts[counted, step, event["visit"]]
                if tried > now.limits.get(step, tried):
                    yield f"{key}: {step} {counted} {tried} times in event {event['seq']}"
            # What follows in the same turn started with its first event.
            by_signal = event["trigger"].startswith("signal:") and not old["handling"]
            # Mail may have killed the processes that an instance is called poison for: it need not have been due.
            poison = _error_type(event) == "Poison"
            asked_for = poison or by_signal or old["lease_owner"] or event["created_at"] == allowed
            early = old["due_at"] is None or event["created_at"] < old["due_at"]
            if kind in FORWARD | UNDOING and not asked_for and early and old["status"] not in OVER | {"failed"}:
                yield f"{key}: {kind} at {event['created_at']}, before it was due at {old['due_at']}"
            allowed = event["created_at"]


def _counted(event: Row) -> str | None:
    """How the event counts as an attempt. The undo of a step has attempts of its own."""
    match event["kind"]:
        case "step_started" | "compensation_started":
            return str(event["kind"])
        # Poison and an unhandled timeout end a wait or a hold; no attempt of the step ran.
        case "step_failed" if _error_type(event) not in {"Poison", "Timeout"}:
            return "step_failed"
        case "compensation_attempt_failed" | "compensation_failed" if _error_type(event) != "Poison":
            return "undo failed"
    return None


def _error_type(event: Row) -> str:
    return str((event["data"].get("error") or {}).get("type", ""))


def invariant_13(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """A terminal instance never changes, except a failed one by retry(), and prune."""
    for key, moments in now.moments.items():
        for old, event, new in moments:
            may = {"request_denied", "workflow_retried"} if old["status"] == "failed" else {"request_denied"}
            if old["status"] in OVER | {"failed"} and event["kind"] not in may:
                yield f"{key} was {old['status']} and then {event['kind']}"
            if event["kind"] == "request_denied" and new != old:
                yield f"{key} was changed by a request that was denied"
    for key, old in (before.instances if before else {}).items():
        if old["status"] not in OVER or key not in now.instances:
            continue
        for name, value in now.instances[key].items():
            if name != "last_seq" and text(value) != text(old[name]):
                yield f"{key} is {old['status']}, and yet {name} went from {old[name]!r} to {value!r}"


def invariant_14(now: Tables, before: Tables | None = None) -> Iterator[str]:
    """In-flight instances finish on the step sequence they started with."""
    for key, moments in now.moments.items():
        for old, event, new in moments:
            if old is not START and text(new["step_sequence"]) != text(old["step_sequence"]):
                yield f"{key}: event {event['seq']} changed the step sequence"
            if new["current_step"] not in new["step_sequence"][new["step_index"] : new["step_index"] + 1]:
                yield f"{key}: step {new['step_index']} is not {new['current_step']}"
            if event["step"] not in new["step_sequence"] and event["kind"] != "workflow_started":
                yield f"{key}: {event['step']} is none of its steps"


INVARIANTS: dict[int, Check] = {
    2: invariant_2,
    3: invariant_3,
    4: invariant_4,
    5: invariant_5,
    6: invariant_6,
    7: invariant_7,
    8: invariant_8,
    11: invariant_11,
    13: invariant_13,
    14: invariant_14,
}
