"""One meeting in the order of one seed, its recovery, and the judgement."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.proof.cases import Case, fresh_world, judged
from tests.proof.interleavings.crossing import Crossing
from tests.proof.interleavings.dawdling import Dawdling, DawdlingBack
from tests.proof.interleavings.meetings import Meeting
from tests.proof.interleavings.one_clock import one_clock
from tests.proof.interleavings.scheduler import Scheduler
from tests.proof.recovery import until_quiet
from workflow_engine.domain.registry import registry


@dataclass(frozen=True)
class Met:
    """What came of it. `complaints`: everything that is wrong; `told`: in which order what was done.
    `switches`: how often another thread went on than before.
    """

    complaints: list[str]
    told: list[str]
    case: Case
    switches: int


def meet(meeting: Meeting, seed: int) -> Met:
    """Let them meet.

    Raises:
        Exception: what one of the threads raised; its note tells the order.
    """
    with fresh_world(**meeting.settings), one_clock(), _luck_of(seed), registry.isolated():
        for program in (Crossing, Dawdling, DawdlingBack):
            registry.register(program)
        works = meeting.prepare()
        scheduler = Scheduler(seed)
        try:
            scheduler.run(works)
        except Exception as error:
            error.add_note("\n".join([f"{meeting.name}, seed {seed}", *scheduler.told]))
            raise
        complaints = list(meeting.settle())
        until_quiet()
        case = judged()
    complaints += map(str, case.violations)
    if not case.ends <= meeting.ends:
        complaints.append(f"it came to {sorted(case.ends)}, not to {sorted(meeting.ends)}")
    return Met(complaints, scheduler.told, case, scheduler.switches)


@contextmanager
def _luck_of(seed: int) -> Iterator[None]:
    """Within the block the workers' random order is the seed's too."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
