"""What a run left behind: whether it has ended, what is wrong with it, and what it has seen."""

from __future__ import annotations

import re
from collections import Counter as Count
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from django.db.models import Max

from tests.celery.chaos import environment
from tests.celery.chaos.agenda import agenda
from tests.celery.chaos.fleet import Fleet
from tests.proof.checker import collect, judge
from tests.proof.evidence import Evidence
from tests.proof.ledger import Entry
from tests.proof.random_programs.accounts import miscounted
from tests.proof.random_programs.plans import Plan
from tests.proof.sometimes import observed
from tests.proof.tables import Tables
from workflow_engine import clock
from workflow_engine.inspection.why import explain
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal

_RAISED = re.compile(r"raised unexpected: (\w+)\(")
_MAY_RAISE = {"OperationalError", "InterfaceError", "ValueError"}
"""The database was away for longer than a task waits; and "nonsense" is no id."""
EXPECTED = ("lost attempt", "suspect", "duplicate delivery")
"""What a run has met at least once, if it was long enough."""
_OF_INTEREST = ("stale writer", "duplicate delivery", "the signal won", "the timeout won", "suspect")


def is_over() -> bool:
    """Whether every instance has ended, and all mail was looked at."""
    return not WorkflowInstance.objects.live().exists() and not WorkflowSignal.objects.pending().exists()


def progress() -> str:
    """Another text whenever something has happened."""
    return f"{WorkflowEvent.objects.aggregate(last=Max('id'))['last']}, {WorkflowSignal.objects.pending().count()}"


def stuck() -> list[str]:
    """Why each that has not ended is where it is."""
    found = []
    for row in WorkflowInstance.objects.live():
        why = explain(row, clock.now("default"))
        told = [why.headline, why.waits_for, why.wrong, *why.notes]
        facts = f"due_at={row.due_at}, poll_at={row.poll_at}, suspect={row.suspect}, recoveries={row.recoveries}"
        found.append(f"{row.pk} of {row.workflow_name} has not ended: {' '.join(filter(None, told))} ({facts})")
    pending = WorkflowSignal.objects.pending().count()
    return found + [f"{pending} signals that nobody has looked at"] * bool(pending)


def complaints(before: Tables, folder: Path, *, finished: bool) -> list[str]:
    """Everything that is wrong.

    Args:
        before: a reading from the end of the storm.
        folder: the logs.
        finished: everything has ended.
    """
    evidence = collect(before=before, at_rest=finished)
    evidence = replace(evidence, ledger=with_all_deaths(evidence.ledger))
    wrong = [str(violation) for violation in judge(evidence)]
    if finished:
        wrong += _miscounted()
    wrong += [entry["error"] for entry in evidence.entries("broke")]
    return wrong + [f"a task raised {name}, {times} times" for name, times in _strange_errors(folder).items()]


def seen(fleet: Fleet, folder: Path) -> Count[str]:
    """What happened, beside what was done to it."""
    evidence = collect()
    found = observed(evidence)
    counts = Count({name: found[name] for name in _OF_INTEREST if found[name]})
    counts["lost attempt"] = sum(_lost(evidence))
    counts.update({f"{name} ended by itself": times for name, times in fleet.ended.items()})
    counts.update({f"task raised {name}": times for name, times in _raised(folder).items()})
    return counts


def instances() -> int:
    """How many there are."""
    return WorkflowInstance.objects.count()


def with_all_deaths(told: Sequence[Entry]) -> list[Entry]:
    """By now every process has ended, some without the nemesis: each after the last entry that it wrote."""
    last = {entry["pid"]: number for number, entry in enumerate(told)}
    entries: list[Entry] = []
    for number, entry in enumerate(told):
        entries.append(entry)
        if last[entry["pid"]] == number:
            entries.append({"what": "died", "pid": entry["pid"], "at": entry["at"], "who": entry["pid"], "by": "end"})
    return entries


def _miscounted() -> list[str]:
    """What is not as the plans say."""
    started = _started()
    wrong = miscounted(started.values())
    ends = dict(WorkflowInstance.objects.values_list("idempotency_key", "status"))
    wrong += [f"{key!r} was started, and is not there" for key in started.keys() - ends.keys()]
    return wrong + [
        f"{key!r} is {ends[key]}, not {plan.status}"
        for key, plan in started.items()
        if key in ends and ends[key] != plan.status
    ]


def _started() -> dict[str, Plan]:
    """What the web process was to start, by key."""
    plans = list(environment.plans())
    calls = agenda(plans, environment.seconds(), environment.seed())
    return {call.key: plans[call.program] for call in calls}


def _lost(evidence: Evidence) -> list[bool]:
    """Attempts that the engine has given up because their lease was over."""
    return [
        (moment.event["data"].get("error") or {}).get("type") == "LeaseExpired"
        for moments in evidence.moments.values()
        for moment in moments
    ]


def _strange_errors(folder: Path) -> dict[str, int]:
    return {name: times for name, times in _raised(folder).items() if name not in _MAY_RAISE}


def _raised(folder: Path) -> Count[str]:
    """Tasks that ended with an error, by its type."""
    return Count(
        name for log in folder.glob("worker*.log") for name in _RAISED.findall(log.read_text(errors="replace"))
    )
