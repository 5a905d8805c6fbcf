"""What a campaign must have met: a test of rare events that never happened has proved nothing.

Each of these is counted in what cases leave behind; `missing` names those that were never seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.proof.evidence import Evidence
from tests.proof.folding import Moment

SOMETIMES = {
    "stale writer": "an attempt came to its end after its lease was over, and was not recorded",
    "duplicate delivery": "a start, a signal or a job arrived twice",
    "the signal won": "a signal was taken although the deadline had passed",
    "the timeout won": "a wait timed out, and its signal came after that",
    "suspect": "an instance was suspect, and was claimed",
    "poison": "an instance was given up after it had killed many processes",
    "undo resumed": "an undo went on in another process than it began in",
    "three deep": "three processes died, one after the other, on one instance",
    "deadlock": "the database ended one of two transactions that waited for each other",
    "commit unknown, carried out": "a COMMIT broke off, and had been carried out",
    "commit unknown, not carried out": "a COMMIT broke off, and had not been carried out",
}
"""What is to be seen, and what it means."""

ONLY_ON_SERVERS = frozenset({"deadlock"})
"""SQLite has one writer."""


def observed(evidence: Evidence) -> Counter[str]:
    """What this case shows of it."""
    found: Counter[str] = Counter()
    found["suspect"] = sum(1 for _ in evidence.entries("suspected"))
    found["three deep"] = sum(1 for _ in evidence.entries("died")) >= 3
    found["duplicate delivery"] = sum(_repeated(evidence))
    found["stale writer"] = sum(_stale(evidence))
    found["undo resumed"] = len({entry["pid"] for entry in evidence.begun if entry["kind"] == "undo"}) > 1
    for entry in evidence.entries("met"):
        found[entry["event"]] += 1
    for key, moments in evidence.moments.items():
        found.update(_in_history(evidence, key, moments))
    return +found


def missing(seen: Iterable[str], *, server: bool) -> list[str]:
    """What was never seen."""
    wanted = SOMETIMES.keys() if server else SOMETIMES.keys() - ONLY_ON_SERVERS
    return sorted(wanted - set(seen))


def _in_history(evidence: Evidence, key: str, moments: list[Moment]) -> Iterator[str]:
    mail = [row for row in evidence.tables.mail.values() if row["instance_id"] == key]
    for before, event, _ in moments:
        if (
            event["kind"] == "signal_received"
            and before["deadline_at"]
            and before["deadline_at"] <= event["created_at"]
        ):
            yield "the signal won"
        late = (row for row in mail if row["name"] in before["awaiting_signals"])
        if event["kind"] == "step_timed_out" and any(row["received_at"] >= event["created_at"] for row in late):
            yield "the timeout won"
        if event["kind"] == "step_failed" and event["data"]["error"]["type"] == "Poison":
            yield "poison"


def _repeated(evidence: Evidence) -> Iterator[int]:
    """How often something arrived once more."""
    sent = Counter(entry["mail"] for entry in evidence.entries("sent"))
    started = Counter(entry["key"] for entry in evidence.entries("started"))
    return (times - 1 for counts in (sent, started) for times in counts.values())


def _stale(evidence: Evidence) -> Iterator[bool]:
    """Attempts that ended after the history had given them up."""
    given_up = {
        (key, moment.event["visit"], moment.event["attempt"]): moment.event["created_at"].timestamp()
        for key, moments in evidence.moments.items()
        for moment in moments
        if moment.kind == "step_failed" and moment.event["data"]["error"]["type"] == "LeaseExpired"
    }
    for entry in evidence.entries("ended"):
        when = given_up.get((entry["instance"], entry["visit"], entry["attempt"]))
        yield entry["kind"] == "activity" and when is not None and entry["at"] > when
