"""One case: a scenario, the crashes that hit it, the recovery, and the judgement."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import override_settings

from tests.proof import broker, ledger, programs, tables
from tests.proof.checker import check
from tests.proof.crashing import crashed, traced
from tests.proof.evidence import Violation
from tests.proof.recovery import until_quiet
from tests.proof.scenarios import Scenario
from workflow_engine import clock, signals


@dataclass(frozen=True)
class Case:
    """What came of one. `died`: how many of the crashes happened. `ends`: the statuses that were reached."""

    violations: Sequence[Violation]
    died: int
    ends: Sequence[str]
    facts: Sequence[ledger.Entry]
    rows: tables.Tables


@contextmanager
def fresh_world(**settings: Any) -> Iterator[None]:
    """Empty tables, an empty ledger, the engine's own time, and receivers that note what they are told."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(ledger.kept_in(Path(folder) / "ledger"))
        stack.enter_context(programs.known())
        stack.enter_context(override_settings(WORKFLOW_ENGINE=settings))
        stack.enter_context(_listening())
        stack.callback(clock.reset_shift)
        broker.jobs.clear()
        tables.wipe()
        yield


def run(scenario: Scenario, crashes: Sequence[int] = (), **settings: Any) -> Case:
    """Let the scenario be hit by one crash after the other, let it recover, and judge what is there then.

    Args:
        scenario: what happens.
        crashes: numbers of failpoints; each child goes on where the last one died.
        settings: of the engine, beside the scenario's.
    """
    with fresh_world(**{**scenario.settings, **settings}):
        instance = scenario.prepare()

        def live() -> None:
            scenario.operate(instance)
            until_quiet()

        died = sum(crashed(live, at) for at in crashes)
        live()
        violations = check()
        rows = tables.read()
        ends = sorted(str(row["status"]) for row in rows.instances.values())
        return Case(violations, died, ends, ledger.read(), rows)


def trace(scenario: Scenario) -> list[str]:
    """The failpoints that the scenario passes when nothing happens to it."""
    with fresh_world(**scenario.settings):
        instance = scenario.prepare()

        def live() -> None:
            scenario.operate(instance)
            until_quiet()

        return traced(live)


def _told(event: Any, **_: Any) -> None:
    ledger.write("told", instance=str(event.instance_id), seq=event.seq, kind=event.kind)


@contextmanager
def _listening() -> Iterator[None]:
    for each in signals.BY_EVENT_KIND.values():
        each.connect(_told)
    try:
        yield
    finally:
        for each in signals.BY_EVENT_KIND.values():
            each.disconnect(_told)
