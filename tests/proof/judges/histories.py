"""What a history may not tell: invariants 4, 5, 6, 7 and 11, by the events alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.proof.evidence import Evidence, Violation
from tests.proof.folding import BY_THE_ENGINE, FORWARD, UNDOING, Moment
from tests.proof.tables import Row

RESULTS = frozenset({"step_completed", "workflow_awaiting", "workflow_slept", "step_failed"})
CLAIMS = frozenset({"step_started", "compensation_started"})
STARTED = (FORWARD | UNDOING) - {"workflow_completed"}
"""What is due, or reports what was; the end follows its last step at once."""


def one_winner_per_wait(evidence: Evidence) -> Iterator[Violation]:
    """A signal that was waited for, or the timeout when its time had come."""
    for key, moments in evidence.moments.items():
        winners: list[str] = []
        for before, event, after in moments:
            number = event["seq"]
            if event["kind"] == "workflow_awaiting" or after["visit"] != before["visit"]:
                winners = []
            if event["kind"] == "signal_received":
                winners.append(f"signal {event['data']['signal_id']}")
                if before["status"] != "awaiting" or event["data"]["signal"] not in before["awaiting_signals"]:
                    yield Violation(4, f"{key}, event {number}: {event['data']['signal']!r} was not awaited")
            if event["kind"] == "step_timed_out":
                winners.append("the timeout")
                if before["status"] != "awaiting" or not _passed(before["deadline_at"], event):
                    yield Violation(4, f"{key}, event {number}: a timeout before {before['deadline_at']}")
            if len(set(winners)) > 1:
                yield Violation(4, f"{key}: {' and '.join(winners)} ended one wait")


def one_result_by_the_newest_lease(evidence: Evidence) -> Iterator[Violation]:
    """A visit completes once; tokens rise by one with each claim; only the newest attempt reports."""
    for key, moments in evidence.moments.items():
        completed = Counter(moment.event["visit"] for moment in moments if moment.kind == "step_completed")
        for visit, times in completed.items():
            if times > 1:
                yield Violation(5, f"{key}: visit {visit} completed {times} times")
        for before, event, after in moments:
            kind, attempt = event["kind"], event["attempt"]
            if after["lease_token"] - before["lease_token"] != (kind in CLAIMS):
                yield Violation(5, f"{key}: {kind} moved the token {before['lease_token']} to {after['lease_token']}")
            if kind in CLAIMS and not after["lease_owner"]:
                yield Violation(5, f"{key}: {kind} claimed nothing for nobody")
            reported = kind in RESULTS and before["lease_owner"] and not _is_poison(event)
            if reported and attempt != before["attempts"]:
                yield Violation(5, f"{key}: attempt {attempt} reported while {before['attempts']} was the newest")


def leases_follow_each_other(evidence: Evidence) -> Iterator[Violation]:
    """Nobody is given a lease while another one is out, and no undo begins beside one."""
    for key, moments in evidence.moments.items():
        for before, event, after in moments:
            kind = event["kind"]
            if before["lease_owner"] and after["lease_owner"] not in {"", before["lease_owner"]}:
                yield Violation(6, f"{key}: {kind} took over a lease that nobody had ended")
            if before["lease_owner"] and kind == "workflow_compensating":
                yield Violation(6, f"{key}: the undo began beside a lease")
            given_up = kind == "step_failed" and event["data"]["error"]["type"] in BY_THE_ENGINE
            if before["lease_owner"] and given_up and not _passed(before["due_at"], event):
                yield Violation(6, f"{key}: a lease until {before['due_at']} was given up at {event['created_at']}")


def undos_run_backwards(evidence: Evidence) -> Iterator[Violation]:
    """The latest open entry first; what is undone stays undone; nothing forward follows; the end leaves none open."""
    for key, moments in evidence.moments.items():
        undoing, done = False, set()
        for before, event, after in moments:
            kind, visit = event["kind"], event["visit"]
            undoing = undoing or kind == "workflow_compensating"
            if undoing and kind in FORWARD:
                yield Violation(7, f"{key}: {kind} of {event['step']} follows an undo")
            if kind in UNDOING and visit in done:
                yield Violation(7, f"{key}: {kind} of visit {visit}, which was undone before")
            if kind in UNDOING and _open(before)[-1:] != [visit]:
                yield Violation(7, f"{key}: {kind} of visit {visit}, while {_open(before)} are to be undone")
            if kind == "step_compensated":
                done.add(visit)
            if undoing and after["status"] in {"compensated", "cancelled"} and _not_undone(after):
                yield Violation(7, f"{key} is {after['status']}, and {_not_undone(after)} are not undone")


def attempts_stay_within_the_policy(evidence: Evidence) -> Iterator[Violation]:
    """Per arming: a new visit, a park and a retry() arm anew. The ledger knows what each step allows."""
    limits = {(entry["workflow"], entry["step"], entry["kind"] == "undo"): entry["limit"] for entry in evidence.begun}
    for key, moments in evidence.moments.items():
        name = evidence.tables.instances[key]["workflow_name"] if key in evidence.tables.instances else ""
        counts: Counter[tuple[bool, str, int, str]] = Counter()
        for moment in moments:
            event = moment.event
            if event["kind"] in {"workflow_awaiting", "workflow_slept", "workflow_retried"}:
                counts.clear()
            counted = _counted(moment)
            if counted is None:
                continue
            undo = event["kind"] in UNDOING
            about = (undo, event["step"], event["visit"], counted)
            counts[about] += 1
            limit = limits.get((name, event["step"], undo))
            if limit is not None and counts[about] > limit:
                yield Violation(11, f"{key}: {event['step']} {counted} {counts[about]} times, {limit} are allowed")


def nothing_starts_early(evidence: Evidence) -> Iterator[Violation]:
    """Not before due_at, unless a signal or a request set it off, or a lease was out and reports. A handler that is
    called again waits for its backoff; what follows in the same turn started with its first event.
    """
    for key, moments in evidence.moments.items():
        turn = None
        for before, event, _ in moments:
            follows, turn = event["created_at"] == turn, event["created_at"]
            if event["kind"] not in STARTED or _is_poison(event):
                continue
            by_signal = event["trigger"].startswith("signal:") and not before["handling"]
            asked_for = by_signal or follows or before["lease_owner"]
            if not asked_for and not _passed(before["due_at"], event):
                when = f"at {event['created_at']}, due at {before['due_at']}"
                yield Violation(11, f"{key}: {event['kind']} of {event['step']} {when}")


def _counted(moment: Moment) -> str | None:
    event = moment.event
    if event["kind"] in CLAIMS:
        return "started"
    failed = event["kind"] in {"step_failed", "compensation_attempt_failed", "compensation_failed"}
    return "failed" if failed and event["data"]["error"]["type"] not in BY_THE_ENGINE else None


def _open(state: Row) -> list[int]:
    """The visits that are still to be undone, in the order in which they were entered."""
    entries = state["compensation_stack"]
    return [entry["visit"] for entry in entries if entry["state"] != "known_failure" and "undo" not in entry]


def _not_undone(state: Row) -> list[int]:
    entries = state["compensation_stack"]
    return [e["visit"] for e in entries if e["state"] != "known_failure" and e.get("undo") != "done"]


def _passed(moment: object, event: Row) -> bool:
    return moment is not None and bool(moment <= event["created_at"])


def _is_poison(event: Row) -> bool:
    return bool((event["data"].get("error") or {}).get("type") == "Poison")


JUDGES = (
    one_winner_per_wait,
    one_result_by_the_newest_lease,
    leases_follow_each_other,
    undos_run_backwards,
    attempts_stay_within_the_policy,
    nothing_starts_early,
)
