"""Whoever dies, wherever: what was promised holds after the recovery, and the scenario comes to its end.

A failed case prints how to run it again: the scenario, and the numbers of the failpoints at which processes died.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from pytest_django import DjangoDbBlocker

from tests.proof import programs
from tests.proof.campaign import OF_EACH, THOROUGH, Campaign, explain, seeds
from tests.proof.cases import crash, fresh_world, judged, trace
from tests.proof.choosing import a_few, all_that_matter
from tests.proof.clients import start
from tests.proof.crashing import Place, Point, crashed
from tests.proof.recovery import until_quiet
from tests.proof.scenarios import SCENARIOS, Scenario
from workflow_engine import failpoints

pytestmark = pytest.mark.django_db(transaction=True)

Traces = Mapping[str, Sequence[Point]]

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "_"))


@pytest.fixture(scope="module")
def traces(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Traces:
    """What each scenario passes when nothing befalls it."""
    with django_db_blocker.unblock():
        return {scenario.name: trace(scenario) for scenario in SCENARIOS}


@every_scenario
def test_a_process_may_die_anywhere(scenario: Scenario, traces: Traces, campaign: Campaign) -> None:
    points = traces[scenario.name]
    chosen = all_that_matter(traces) if THOROUGH else a_few(traces, OF_EACH)
    for at in chosen[scenario.name]:
        hit(scenario, [at], campaign, f"died at {points[at].name}")


@every_scenario
def test_processes_may_die_while_others_recover_what_they_left(
    scenario: Scenario, traces: Traces, campaign: Campaign
) -> None:
    for seed in seeds(usually=OF_EACH):
        campaign.tries(seed)
        chance = random.Random(f"{scenario.name} {seed}")  # noqa: S311 - a seed is to be repeated
        passings = len(traces[scenario.name])
        hit(scenario, [chance.randrange(passings) for _ in range(3)], campaign, f"seed {seed}")


@pytest.mark.parametrize("then", ["suspect.before", "suspect.after", "handler.after"])
def test_the_one_who_takes_up_a_suspect_may_die_too(then: str, campaign: Campaign) -> None:
    steps = next(scenario for scenario in SCENARIOS if scenario.name == "steps")
    hit(steps, ["handler.before", then, then], campaign, "three deep")


def test_a_step_that_kills_every_process_ends_as_poison_and_others_go_on(campaign: Campaign) -> None:
    with fresh_world():
        start(programs.Killer, "the killer")
        start(programs.Ladder, "its neighbour")
        deaths = 0
        while crashed(until_quiet, "never"):
            deaths += 1
            assert deaths < 20, "nobody stops it"
        case = judged(deaths)
    campaign.note(case)
    assert (case.violations, case.ends) == ([], frozenset({"failed", "completed"}))
    assert deaths == 6


def test_every_failpoint_has_killed(traces: Traces, campaign: Campaign) -> None:
    """Of those that the undisturbed scenarios pass; the choice leaves none out."""
    chosen = all_that_matter(traces) if THOROUGH else a_few(traces, OF_EACH)
    names = {traces[scenario][at].name for scenario, numbers in chosen.items() for at in numbers}
    assert names | {"suspect.before", "suspect.after"} == set(failpoints.NAMES)


def hit(scenario: Scenario, crashes: Sequence[Place], campaign: Campaign, what: str) -> None:
    """Run the case; it must come to one of the scenario's ends, with nothing to report."""
    case = crash(scenario, crashes)
    campaign.note(case)
    assert not case.violations, explain(case, scenario.name, [*crashes, what])
    assert case.ends <= scenario.ends, explain(case, scenario.name, [*crashes, what])
