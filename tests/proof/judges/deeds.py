"""What was done, by the ledger, against what the tables say was done: invariants 1, 5, 6, 7, 10, 11, 12 and 14."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from math import inf

from tests.proof.evidence import Evidence, Judge, Violation
from tests.proof.folding import BODY_OUTCOMES, BY_THE_ENGINE, Moment
from tests.proof.ledger import Entry
from tests.proof.tables import Row

Deed = tuple[str, int, str]
"""Step, visit, and which run of what: "body#1", "signal:7#2", "timeout#1", "undo#1"."""


def writes_commit_with_their_progress(evidence: Evidence) -> Iterator[Violation]:
    """As many rows of a handler as there are events that say it succeeded: never one without the other."""
    written: dict[str, Counter[Deed]] = defaultdict(Counter)
    for row in evidence.tables.effects:
        written[row["instance_id"]][row["step"], row["visit"], row["note"]] += 1
    for key, moments in evidence.moments.items():
        recorded = Counter(deed for moment in moments if (deed := _transactional(moment)) is not None)
        for deed in sorted(recorded.keys() | written[key].keys()):
            if recorded[deed] != written[key][deed]:
                yield Violation(1, f"{key}: {deed} wrote {written[key][deed]} times, recorded {recorded[deed]} times")
    for key in written.keys() - evidence.moments.keys():
        yield Violation(1, f"{key} does not exist, and its steps wrote {sorted(written[key])}")


def results_come_from_their_attempt(evidence: Evidence) -> Iterator[Violation]:
    """Each recorded success was reached by the run that the event names, and carries that run's own nonce."""
    ended: dict[tuple[str, Deed], set[str]] = defaultdict(set)
    for entry in evidence.entries("ended"):
        if entry["ok"]:
            ended[entry["instance"], _deed(entry)].add(entry["nonce"])
    for key, moments in evidence.moments.items():
        for moment in moments:
            event = moment.event
            deed = _transactional(moment) or _leased(moment)
            if deed is None:
                continue
            nonces = ended.get((key, deed))
            if nonces is None:
                yield Violation(5, f"{key}: {event['kind']} of {deed}, which never came to that end")
                continue
            told = event["data"].get("updates", {}).get("nonce")
            if told is not None and told not in nonces:
                yield Violation(5, f"{key}: {event['kind']} of {deed} carries the result of another run")


def one_key_per_visit(evidence: Evidence) -> Iterator[Violation]:
    """The same in all attempts, another for every other visit and for the undo."""
    keys: dict[tuple[str, int, bool], set[str]] = defaultdict(set)
    for entry in evidence.begun:
        keys[entry["instance"], entry["visit"], entry["kind"] == "undo"].add(entry["key"])
    for about, used in keys.items():
        if len(used) > 1:
            yield Violation(5, f"visit {about[1]} of {about[0]} has used {len(used)} idempotency keys")
    owners = Counter(key for used in keys.values() for key in used)
    for key, times in owners.items():
        if times > 1:
            yield Violation(5, f"{times} visits have used the idempotency key {key}")


def work_never_overlaps(evidence: Evidence) -> Iterator[Violation]:
    """No user code of an instance begins while other code of it has a live lease, or its row lock."""
    held: dict[str, _Held] = defaultdict(_Held)
    for entry in evidence.ledger:
        match entry["what"]:
            case "began":
                for other in held[entry["instance"]].beside(entry):
                    yield Violation(6, f"{_about(entry)} began while {_about(other)} was at it")
                held[entry["instance"]].take(entry)
            case "renewed":
                held[entry["instance"]].until[entry["nonce"]] = entry["until"]
            case "ended":
                held[entry["instance"]].end(entry)
            case "died":
                for each in held.values():
                    each.bury(entry["who"])


class _Held:
    """Who is at work on one instance. A lease lives until its end, or until its holder has come to an end; a row lock
    until the handler ends or its process dies.
    """

    def __init__(self) -> None:
        self._runs: dict[str, Entry] = {}
        self.until: dict[str, float] = {}
        """The end of each lease, by nonce."""

    def take(self, entry: Entry) -> None:
        self._runs[entry["nonce"]] = entry
        if entry["lease"] is not None:
            self.until[entry["nonce"]] = entry["at"] + entry["lease"]

    def beside(self, entry: Entry) -> list[Entry]:
        return [run for nonce, run in self._runs.items() if self.until.get(nonce, inf) > entry["at"]]

    def end(self, entry: Entry) -> None:
        self._runs.pop(entry["nonce"], None)

    def bury(self, process: int) -> None:
        gone = [n for n, run in self._runs.items() if run["pid"] == process and n not in self.until]
        for nonce in gone:
            del self._runs[nonce]


def nothing_starts_unclaimed(evidence: Evidence) -> Iterator[Violation]:
    """Work outside transactions starts once per claim in the history."""
    begun: Counter[tuple[str, str, int, int]] = Counter()
    for entry in evidence.begun:
        if entry["lease"] is not None:
            begun[entry["instance"], entry["kind"], entry["visit"], entry["attempt"]] += 1
    claims = {"step_started": "activity", "compensation_started": "undo"}
    claimed = Counter(
        (key, claims[moment.kind], moment.event["visit"], moment.event["attempt"])
        for key, moments in evidence.moments.items()
        for moment in moments
        if moment.kind in claims
    )
    for about, times in begun.items():
        if times > claimed[about]:
            yield Violation(11, f"{about} started {times} times, claimed {claimed[about]} times")


def undos_follow_what_was_done(evidence: Evidence) -> Iterator[Violation]:
    """Nothing forward begins once an undo has; at the end, all that may have been done was offered for undo."""
    undone: dict[str, set[int]] = defaultdict(set)
    for entry in evidence.begun:
        if entry["kind"] == "undo":
            undone[entry["instance"]].add(entry["visit"])
        elif undone[entry["instance"]]:
            yield Violation(7, f"{_about(entry)} began after an undo of its instance")
    ends = {(entry["instance"], entry["nonce"]): entry for entry in evidence.entries("ended")}
    for entry in evidence.begun:
        row = evidence.tables.instances.get(entry["instance"])
        over = row is not None and row["status"] in {"compensated", "failed"}
        if not over or entry["kind"] != "activity" or not entry["undoable"]:
            continue
        end = ends.get((entry["instance"], entry["nonce"]))
        nothing_done = end is not None and end.get("nothing_done")
        if not nothing_done and entry["visit"] not in undone[entry["instance"]]:
            yield Violation(7, f"{_about(entry)} may have done something, and was never offered for undo")


def poison_is_counted_in_deaths(evidence: Evidence) -> Iterator[Violation]:
    """Nothing is called poison before so many processes died on it, and nothing kills more of them than that."""
    deaths = sum(1 for _ in evidence.entries("died"))
    for key, moments in evidence.moments.items():
        for moment in moments:
            error = moment.event["data"].get("error") or {}
            if error.get("type") == "Poison" and deaths < evidence.max_recoveries:
                yield Violation(10, f"{key} is called poison after {deaths} deaths")
    ended = {entry["nonce"] for entry in evidence.entries("ended")}
    killed = Counter(
        (entry["instance"], _deed(entry))
        for entry in evidence.begun
        if entry["nonce"] not in ended and entry["lease"] is None
    )
    for (key, deed), times in killed.items():
        if times > evidence.max_recoveries + 1:
            yield Violation(10, f"{key}: {deed} has killed {times} processes")


def messages_tell_of_what_is_committed(evidence: Evidence) -> Iterator[Violation]:
    """Every Django signal tells of an event that is there, and every job names an instance that is."""
    events = {
        (key, event["seq"]): (event["kind"], event["created_at"])
        for key, history in evidence.tables.events.items()
        for event in history
    }
    for entry in evidence.entries("told"):
        told = entry["kind"], datetime.fromisoformat(entry["created_at"])
        if events.get((entry["instance"], entry["seq"])) != told:
            yield Violation(12, f"{entry['kind']}, event {entry['seq']} of {entry['instance']}, was told and is not so")
    for entry in evidence.entries("handed"):
        if entry["instance"] not in evidence.tables.instances:
            yield Violation(12, f"{entry['instance']} was handed out and does not exist")


def failures_come_from_code(evidence: Evidence) -> Iterator[Violation]:
    """An instance fails because of what its steps did, or of what the engine counts; never for want of code."""
    ended = {(entry["instance"], _deed(entry)) for entry in evidence.entries("ended")}
    for key, moments in evidence.moments.items():
        for before, event, _ in moments:
            if event["kind"] != "step_failed" or event["data"]["error"]["type"] in BY_THE_ENGINE:
                continue
            run = "activity" if before["lease_owner"] else event["trigger"] or "body"
            if (key, (event["step"], event["visit"], f"{run}#{event['attempt']}")) not in ended:
                yield Violation(14, f"{key}: {event['step']} failed, and nothing of it ran")


def _transactional(moment: Moment) -> Deed | None:
    """The handler inside the engine's transaction whose success the event records."""
    event = moment.event
    where, attempt = (event["step"], event["visit"]), event["attempt"]
    if event["kind"] == "step_compensated" and not moment.before["lease_owner"]:
        return (*where, f"undo#{attempt}")
    if event["kind"] not in BODY_OUTCOMES or moment.before["lease_owner"] or event["trigger"] == "timer":
        return None
    return (*where, f"{event['trigger'] or 'body'}#{attempt}")


def _leased(moment: Moment) -> Deed | None:
    """The activity or undo outside transactions whose success the event records."""
    event = moment.event
    if not moment.before["lease_owner"] or event["kind"] not in BODY_OUTCOMES | {"step_compensated"}:
        return None
    kind = "undo" if event["kind"] == "step_compensated" else "activity"
    return event["step"], event["visit"], f"{kind}#{event['attempt']}"


def _deed(entry: Entry) -> Deed:
    return entry["step"], entry["visit"], f"{entry['about']}#{entry['attempt']}"


def _about(entry: Row) -> str:
    return f"{entry['step']}, visit {entry['visit']}, {entry['about']}#{entry['attempt']}"


JUDGES: tuple[Judge, ...] = (
    writes_commit_with_their_progress,
    results_come_from_their_attempt,
    one_key_per_visit,
    work_never_overlaps,
    nothing_starts_unclaimed,
    undos_follow_what_was_done,
    poison_is_counted_in_deaths,
    messages_tell_of_what_is_committed,
    failures_come_from_code,
)
