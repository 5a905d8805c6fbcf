"""Rows against their history, and instances against their keys: invariants 2, 8, 13 and 14."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.proof.evidence import Evidence, Violation
from tests.proof.folding import BEGINNING, KINDS, LEADS_TO, OVER, STATUS_AFTER, TERMINAL, UNDOING, Moment, same

FIXED = ("workflow_name", "tenant", "idempotency_key", "key_hash", "fingerprint", "input", "subject_type", "subject_id")
"""What a start says for good."""


def history_is_whole(evidence: Evidence) -> Iterator[Violation]:
    """Numbered from 1 without a gap, begun by the start, and of nobody who is gone."""
    for key, row in evidence.tables.instances.items():
        history = evidence.tables.events.get(key, [])
        numbers = [event["seq"] for event in history]
        if numbers != list(range(1, row["last_seq"] + 1)):
            yield Violation(2, f"{key} has the events {numbers}, its last_seq is {row['last_seq']}")
        if [event["seq"] for event in history if event["kind"] == "workflow_started"] != [1]:
            yield Violation(2, f"the history of {key} does not begin with its start, or starts twice")
        if not 1 <= row["version"] <= row["last_seq"]:
            yield Violation(2, f"{key} is at version {row['version']} after {row['last_seq']} events")
    for key in evidence.tables.events.keys() - evidence.tables.instances.keys():
        yield Violation(2, f"{key} has a history and no row")


def transitions_are_legal(evidence: Evidence) -> Iterator[Violation]:
    """Each event is of a known kind, tells of the step that it is about, and leads where its kind may lead."""
    for key, moments in evidence.moments.items():
        for moment in moments:
            yield from (Violation(2, f"{key}, event {moment.event['seq']}: {text}") for text in _wrong_in(moment))


def _wrong_in(moment: Moment) -> Iterator[str]:
    before, event, after = moment
    old, new, told = before["status"], after["status"], event["data"].get("set", {})
    if moment.kind not in KINDS:
        yield f"there is no kind {moment.kind!r}"
    if new != old and new not in LEADS_TO.get(old, set()):
        yield f"{old or 'nothing'} can't lead to {new}"
    if "status" in told and told["status"] not in STATUS_AFTER.get(moment.kind, set()):
        yield f"{moment.kind} can't set the status {told['status']}"
    if moment.kind.startswith("workflow_") and new not in STATUS_AFTER.get(moment.kind, {new}):
        yield f"after {moment.kind} the status is {new}"
    where = (event["step"], event["visit"])
    if moment.kind in UNDOING:
        if where not in {(entry["step"], entry["visit"]) for entry in before["compensation_stack"]}:
            yield f"{moment.kind} of {where}, which was never done"
    elif moment.kind != "workflow_started" and where != (before["current_step"], before["visit"]):
        yield f"{moment.kind} of {where} while {(before['current_step'], before['visit'])} is current"


def history_folds_to_the_row(evidence: Evidence) -> Iterator[Violation]:
    """Each journalled column is what the events make of it. Heartbeats move a live lease's end, and only onwards."""
    for key, row in evidence.tables.instances.items():
        folded = evidence.moments[key][-1].after if evidence.moments.get(key) else BEGINNING
        for name in BEGINNING:
            if same(row[name], folded[name]):
                continue
            renewed = name == "due_at" and row["lease_owner"] and folded["due_at"] and row["due_at"]
            if not (renewed and row["due_at"] > folded["due_at"]):
                yield Violation(2, f"{key}.{name} is {row[name]!r}, its history says {folded[name]!r}")


def one_instance_per_key(evidence: Evidence) -> Iterator[Violation]:
    """Among the rows, and in what was answered to those who started."""
    rows = evidence.tables.instances
    keys = Counter((row["tenant"], row["workflow_name"], row["idempotency_key"]) for row in rows.values())
    for key, times in keys.items():
        if times > 1 and key[2] is not None:
            yield Violation(8, f"{times} instances have the key {key}")
    calls = Counter((row["tenant"], row["input"].get("call")) for row in rows.values())
    for call, times in calls.items():
        if times > 1 and call[1] is not None:
            yield Violation(8, f"the start {call} made {times} instances")
    answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for entry in evidence.entries("started"):
        key, instance = (entry["tenant"], entry["workflow"], entry["key"]), entry["instance"]
        answers[key].add(instance)
        row = rows.get(instance)
        if row is None:
            yield Violation(8, f"{key} was answered with {instance}, which does not exist")
        elif (row["tenant"], row["workflow_name"], row["idempotency_key"]) != key:
            yield Violation(8, f"{key} was answered with {instance}, which is another's")
    for key, instances in answers.items():
        if len(instances) > 1:
            yield Violation(8, f"{key} was answered with {len(instances)} instances")


def a_start_is_for_good(evidence: Evidence) -> Iterator[Violation]:
    """What was given to a start is the same in every later reading."""
    for key, old in (evidence.before.instances if evidence.before else {}).items():
        new = evidence.tables.instances.get(key, old)
        for name in FIXED:
            if not same(old[name], new[name]):
                yield Violation(8, f"{key}.{name} was {old[name]!r} and is {new[name]!r}")


def the_end_is_the_end(evidence: Evidence) -> Iterator[Violation]:
    """After a terminal status come refusals only; a failed instance may be retried."""
    for key, moments in evidence.moments.items():
        for moment in moments:
            status = moment.before["status"]
            may = {"request_denied", "workflow_retried"} if status == "failed" else {"request_denied"}
            if status in TERMINAL and moment.kind not in may:
                yield Violation(13, f"{key} was {status}, and then {moment.kind}")
            if moment.kind == "request_denied" and not same(moment.before, moment.after):
                yield Violation(13, f"{key} was changed by a request that was denied")
    for key, old in (evidence.before.instances if evidence.before else {}).items():
        new = evidence.tables.instances.get(key)
        if old["status"] not in OVER or new is None:
            continue
        for name in old.keys() - {"last_seq"}:
            if not same(old[name], new[name]):
                yield Violation(13, f"{key} is {old['status']}, and {name} went from {old[name]!r} to {new[name]!r}")


def steps_stay_those_of_the_start(evidence: Evidence) -> Iterator[Violation]:
    """The sequence never changes, and the current step is in its place."""
    for key, moments in evidence.moments.items():
        for before, event, after in moments:
            sequence = after["step_sequence"]
            if before["status"] and not same(before["step_sequence"], sequence):
                yield Violation(14, f"{key}: event {event['seq']} changed the step sequence")
            elif after["step_index"] >= len(sequence) or sequence[after["step_index"]] != after["current_step"]:
                yield Violation(14, f"{key}: number {after['step_index']} of {sequence} is not {after['current_step']}")
            elif event["step"] not in sequence and before["status"]:
                yield Violation(14, f"{key}: {event['step']} is none of its steps")


JUDGES = (
    history_is_whole,
    transitions_are_legal,
    history_folds_to_the_row,
    one_instance_per_key,
    a_start_is_for_good,
    the_end_is_the_end,
    steps_stay_those_of_the_start,
)
