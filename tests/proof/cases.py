"""One case: a scenario, what befalls it, the recovery, and the judgement."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import override_settings

from tests.proof import broker, deeds, ledger, programs, tables
from tests.proof.checker import collect, judge
from tests.proof.crashing import Place, Point, Work, crashed, interrupted, traced
from tests.proof.evidence import Evidence, Violation
from tests.proof.recovery import until_quiet
from tests.proof.scenarios import Scenario
from workflow_engine import clock, signals


@dataclass(frozen=True)
class Case:
    """What came of one. `died`: how many of its crashes happened. `ends`: the statuses that were reached."""

    violations: list[Violation]
    ends: frozenset[str]
    evidence: Evidence
    died: int = 0


@contextmanager
def fresh_world(**settings: Any) -> Iterator[None]:
    """Empty tables, an empty ledger, the engine's own time, and receivers that note what they are told."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(ledger.kept_in(Path(folder) / "ledger"))
        stack.enter_context(programs.known())
        stack.enter_context(override_settings(WORKFLOW_ENGINE=settings))
        stack.enter_context(listening())
        stack.enter_context(deeds.interruptible())
        stack.callback(clock.reset_shift)
        broker.jobs.clear()
        broker.refusing.clear()
        tables.wipe()
        yield


@contextmanager
def life_of(scenario: Scenario, **settings: Any) -> Iterator[Callable[[], None]]:
    """A fresh world, prepared for the scenario; and what is to happen in it, to be called once or again and again."""
    with fresh_world(**{**scenario.settings, **settings}):
        instance = scenario.prepare()

        def live() -> None:
            scenario.operate(instance)
            until_quiet()

        yield live


def trace(scenario: Scenario) -> list[Point]:
    """The failpoints that the scenario passes when nothing befalls it."""
    with life_of(scenario) as live:
        return traced(live)


def crash(scenario: Scenario, crashes: Sequence[Place], **settings: Any) -> Case:
    """Let the scenario be hit by one crash after the other, each in the process that goes on where the last one died;
    let it recover, and judge what is there then.

    Args:
        scenario: what happens.
        crashes: numbers of failpoints.
        settings: of the engine, beside the scenario's.
    """
    with life_of(scenario, **settings) as live:
        died = sum(crashed(live, at) for at in crashes)
        traced(live)
        return judged(died)


def interrupt(scenario: Scenario, at: Place, by: Work, **settings: Any) -> Case:
    """Let somebody else have his turn in the middle of the scenario, which then goes on, unaware of it."""
    with life_of(scenario, **settings) as live:
        interrupted(live, at, by)
        traced(until_quiet)
        return judged()


def judged(died: int = 0, *, at_rest: bool = True) -> Case:
    """The case as the tables and the ledger tell it now."""
    evidence = collect(at_rest=at_rest)
    ends = frozenset(str(row["status"]) for row in evidence.tables.instances.values())
    return Case(judge(evidence), ends, evidence, died)


def _told(event: Any, **_: Any) -> None:
    about = {"instance": str(event.instance_id), "seq": event.seq, "kind": event.kind}
    ledger.write("told", **about, created_at=event.created_at.isoformat())


@contextmanager
def listening() -> Iterator[None]:
    """Within the block what receivers are told is noted."""
    for each in signals.BY_EVENT_KIND.values():
        each.connect(_told)
    try:
        yield
    finally:
        for each in signals.BY_EVENT_KIND.values():
            each.disconnect(_told)
