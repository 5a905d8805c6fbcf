"""Whoever comes in between: at every failpoint outside a transaction somebody else may have his turn, to its end. Then
the one who was interrupted goes on without knowing.

This is what a stalled process, a second worker, a repeated delivery and an impatient client have in common.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from tests.proof.campaign import OF_EACH, Campaign, explain, seeds
from tests.proof.cases import interrupt, trace
from tests.proof.clients import request, start
from tests.proof.programs import LEASE, Ladder
from tests.proof.recovery import pass_time, until_quiet, work
from tests.proof.scenarios import SCENARIOS, Scenario
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db(transaction=True)

EVERY_END = frozenset({"completed", "failed", "compensated", "cancelled"})


def another_worker_looks() -> None:
    work()


def another_worker_takes_over() -> None:
    """The one who is interrupted stands still until every hold and lease is over."""
    pass_time(LEASE * 1.1)
    work()


def others_finish_it() -> None:
    """He stands still until there is nothing left to do."""
    pass_time(LEASE * 1.1)
    until_quiet()


def the_message_comes_again() -> None:
    """Delivered twice, to a process that drives at once."""
    for instance in WorkflowInstance.objects.all():
        engine.drive(instance)


def somebody_cancels() -> None:
    for instance in WorkflowInstance.objects.all():
        request("cancel", instance.pk)
    work()


def somebody_pauses_and_resumes() -> None:
    for verb in ("pause", "resume"):
        for instance in WorkflowInstance.objects.all():
            request(verb, instance.pk)
        work()


def the_start_is_repeated() -> None:
    if WorkflowInstance.objects.filter(workflow_name=Ladder.name).exists():
        start(Ladder, "the start")


OTHERS: Mapping[Callable[[], None], frozenset[str] | None] = {
    another_worker_looks: None,
    another_worker_takes_over: None,
    others_finish_it: None,
    the_message_comes_again: None,
    somebody_cancels: EVERY_END,
    somebody_pauses_and_resumes: None,
    the_start_is_repeated: None,
}
"""Who comes in between, and where that may lead, if not where the scenario leads anyway."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "_"))
def test_somebody_else_may_come_in_between(scenario: Scenario, campaign: Campaign) -> None:
    points = trace(scenario)
    outside = [number for number, point in enumerate(points) if point.outside]
    for seed in seeds(usually=2 * OF_EACH):
        campaign.tries(seed)
        chance = random.Random(f"{scenario.name} {seed}")  # noqa: S311 - a seed is to be repeated
        at, other = chance.choice(outside), chance.choice(list(OTHERS))
        case = interrupt(scenario, at, other)
        campaign.note(case)
        campaign.interruptions[other.__name__] += 1
        told = explain(case, scenario.name, [at, points[at].name, other.__name__, f"seed {seed}"])
        assert not case.violations, told
        assert case.ends <= (OTHERS[other] or scenario.ends), told
