"""What hunts are made of: cases that provoke one kind of bug each.

In the engine as it is they find nothing; mutants are caught by them. The named ones are in `hunts`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from itertools import count
from typing import Any
from uuid import UUID

from django.db import connection

from tests.proof import ledger
from tests.proof.cases import Case, fresh_world, judged, life_of
from tests.proof.clients import send, start
from tests.proof.crashing import Place, Work, crashed, traced
from tests.proof.deeds import interrupt_with
from tests.proof.programs import BACKOFF
from tests.proof.recovery import pass_time, until_quiet, work
from tests.proof.scenarios import SCENARIOS

Attempt = Callable[[Work], None]
"""How a part of a hunt is run: `strictly`, or `whatever_happens`."""

Hunt = Callable[[Attempt], Case]


def strictly(part: Work) -> None:
    """Any error is one."""
    part()


def whatever_happens(part: Work) -> None:
    """An error of the mutant is noted, and must not hide what the mutant did to the tables."""
    try:
        part()
    except Exception as error:  # noqa: BLE001 - a mutant may do anything
        ledger.write("broke", error=repr(error))
        if not connection.in_atomic_block:
            connection.close()


@cache
def crash_at(scenario: str, *places: Place) -> Hunt:
    """Processes die at these places of the scenario, one after the other; without places it is left in peace."""
    found = next(each for each in SCENARIOS if each.name == scenario)

    def hunt(attempt: Attempt) -> Case:
        with life_of(found) as live:
            for place in places:
                attempt(partial(crashed, live, place))
            attempt(partial(traced, live))
            return judged()

    return hunt


@cache
def beside(program: Any, somebody: Callable[[UUID], object]) -> Hunt:
    """While the activity runs, or the step, somebody does this."""

    def hunt(attempt: Attempt) -> Case:
        with fresh_world():
            instance = start(program, "the start")
            interrupt_with(partial(somebody, instance))
            attempt(until_quiet)
            return judged()

    return hunt


@cache
def looked_at(program: Any, after: timedelta) -> Hunt:
    """It has waited for so long, and goes on waiting; then mail comes that it does not want."""

    def hunt(attempt: Attempt) -> Case:
        with fresh_world():
            instance = start(program, "the start")
            attempt(work)
            pass_time(after)
            attempt(work)
            attempt(partial(another_worker_looks, instance))
            attempt(until_quiet)
            return judged()

    return hunt


def at_the_second(place: str, then: Work) -> Callable[[str], None]:
    """For `failpoints.installed`: when that place is reached for the second time, this happens."""
    times = count(1)

    def reached(name: str) -> None:
        if name == place and next(times) == 2:
            then()

    return reached


def another_worker_looks(instance: UUID) -> None:
    """Mail comes, so that another worker looks at the instance now."""
    send(instance, "whatever", "mail")
    work()


def after_a_backoff() -> None:
    """What failed is tried again."""
    pass_time(BACKOFF * 1.1)
    work()
