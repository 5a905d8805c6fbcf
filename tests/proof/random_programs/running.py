"""One run of random programs under a nemesis: until all is quiet, and then the judgement."""

from __future__ import annotations

import time
from collections import Counter as Count
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from uuid import UUID

from django.db import connection

from tests.proof import ledger
from tests.proof.cases import Case, fresh_world, judged
from tests.proof.random_programs.accounts import miscounted
from tests.proof.random_programs.customers import Customers
from tests.proof.random_programs.nemesis import Nemesis, nemesis
from tests.proof.random_programs.plans import COUNTERS, Plan, make
from tests.proof.recovery import until_quiet
from tests.servers.server import Server
from tests.shop.models import Counter
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowInstance

SETTINGS: dict[str, Any] = {
    "HOLD": 3,
    "POLL_INTERVAL": 0.05,
    "TICK_INTERVAL": 1,
    "POSTPONE": 0.5,
    "IDLE_IN_TRANSACTION": 1,
    "MAX_RECOVERIES": 10_000,  # the nemesis kills at random, so nothing is poison
}
_CALM = 60.0
"""Seconds that the workers get when nothing befalls them any more. What is left then is the recovery's."""


@dataclass(frozen=True)
class Outcome:
    """What came of it. `complaints`: everything that is wrong. `faults`: what befell the workers."""

    complaints: list[str]
    case: Case
    faults: Count[str]


def run(
    seed: int,
    *,
    seconds: float,
    workers: int = 3,
    programs: int = 3,
    instances: int = 2,
    server: Server | None = None,
) -> Outcome:
    """Make programs, run several instances of each, let the nemesis loose for so long, and judge.

    Args:
        seed: of the programs and of the nemesis.
        seconds: that the nemesis has.
        workers: processes.
        programs: different ones.
        instances: of each program.
        server: that the default database is on, and that the nemesis may stop and kill.
    """
    chance = Random(seed)  # noqa: S311 - a seed is to be repeated
    plans = [make(f"proof_random_{number}", chance) for number in range(programs)]
    with fresh_world(**SETTINGS), registry.isolated():
        for name in COUNTERS:
            Counter.objects.create(name=name)
        longest_stop = 0.4 if connection.vendor == "sqlite" else 4
        with nemesis(chance, workers, longest_stop, server) as loose:
            customers = Customers(plans, instances, chance)
            _rage(loose, chance, customers, seconds)
            _calm(loose, customers)
        until_quiet()
        case = judged()
        complaints = [*map(str, case.violations), *_wrong(customers.started)]
    return Outcome(complaints, _without_the_living(case), loose.done)


def _rage(loose: Nemesis, chance: Random, customers: Customers, seconds: float) -> None:
    """Blow after blow; and the customers' calls, spread over the time."""
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        customers.call(passed / seconds)
        time.sleep(chance.uniform(0.02, 0.4))
        loose.strike()
        if chance.random() < 0.3:
            customers.look_after()
    customers.call(1)


def _calm(loose: Nemesis, customers: Customers) -> None:
    """Until nothing is left to do; not for ever, for what is left then is the recovery's."""
    end = time.monotonic() + _CALM
    while _unfinished() and time.monotonic() < end:
        loose.look_after()
        customers.look_after()
        time.sleep(0.05)


def _unfinished() -> bool:
    """A failed instance is to be repaired."""
    return WorkflowInstance.objects.exclude(status__in=["completed", "compensated", "cancelled"]).exists()


def _wrong(started: Sequence[tuple[UUID, Plan]]) -> list[str]:
    """What is not as the plans say, and workers that broke."""
    wrong = miscounted(plan for _, plan in started)
    ends = dict(WorkflowInstance.objects.values_list("pk", "status"))
    wrong += [
        f"{key} of {plan.name} is {ends[key]}, not {plan.status}" for key, plan in started if ends[key] != plan.status
    ]
    return wrong + [entry["error"] for entry in ledger.read() if entry["what"] == "broke"]


def _without_the_living(case: Case) -> Case:
    """For the campaign's figures: who was stopped or cut off lost its transaction only."""
    told = [entry for entry in case.evidence.ledger if entry["what"] != "died" or entry["by"] == "kill"]
    return replace(case, evidence=replace(case.evidence, ledger=told))
