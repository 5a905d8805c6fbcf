"""What happens to an instance, and what it must come to, whoever dies on the way.

`prepare` runs undisturbed. `operate` is what clients do, and is repeated by them after a crash, so it may be cut off
anywhere. Whatever is due then runs by itself. `ends` are the statuses that all instances must reach in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from tests.proof import broker, programs
from tests.proof.clients import request, send, start
from tests.proof.deeds import interrupt_with
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, pass_time_until, until_quiet, work
from tests.shop.models import Counter
from workflow_engine.models import WorkflowInstance

HOUR = 3600.0
PUSHING = {"DISPATCHER": broker.PATH}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One row of the matrix."""

    name: str
    prepare: Callable[[], UUID | None]
    operate: Callable[[UUID | None], None]
    ends: frozenset[str]
    settings: Mapping[str, Any] = field(default_factory=dict)


def the_one() -> UUID:
    """The instance of a scenario that has one."""
    return WorkflowInstance.objects.get().pk


def _parked(program: Any) -> Callable[[], UUID]:
    """Started and driven until it waits."""

    def prepare() -> UUID:
        instance = start(program, "the start")
        work()
        return instance

    return prepare


def _started(program: Any) -> Callable[[], UUID]:
    return lambda: start(program, "the start")


def _nothing() -> None:
    """Nothing is there before."""


def _start_inside_a_transaction(_: UUID | None) -> None:
    """The caller's own row and the start commit together, or neither."""
    with transaction.atomic():
        Counter.objects.get_or_create(name="order")
        start(programs.Ladder, "the start")
    work()


def _start(_: UUID | None) -> None:
    start(programs.Ladder, "the start")
    work()


def _answer(instance: UUID | None) -> None:
    send(instance or the_one(), "yes", "the answer")
    work()


def _answer_and_be_late(instance: UUID | None) -> None:
    """The signal is there in time, and nobody looks until the deadline has passed."""
    send(instance or the_one(), "yes", "the answer")
    pass_time_until(HOUR + 1)
    work()


def _answer_and_another(instance: UUID | None) -> None:
    for call in ("the first", "the second", "one too many"):
        send(instance or the_one(), "approved", call)
    work()


def _answer_early(_: UUID | None) -> None:
    instance = start(programs.Waiting, "the start")
    send(instance, "no", "an early answer")
    work()


def _wait_in_vain(instance: UUID | None) -> None:
    pass_time_until(HOUR + 1)
    work()


def _wait_in_vain_and_answer_late(instance: UUID | None) -> None:
    pass_time_until(HOUR + 1)
    work()
    send(instance or the_one(), "yes", "a late answer")
    work()


def _work(_: UUID | None) -> None:
    work()


def _cancel(instance: UUID | None) -> None:
    request("cancel", instance or the_one())
    work()


def _pause_and_resume(instance: UUID | None) -> None:
    target = instance or the_one()
    send(target, "yes", "the answer")
    request("pause", target)
    until_quiet()
    if WorkflowInstance.objects.get(pk=target).paused:
        request("resume", target)
        work()


def _repair_and_retry(instance: UUID | None) -> None:
    work()
    Counter.objects.get_or_create(name="repaired")
    request("retry", instance or the_one())
    work()


def _go(instance: UUID | None) -> None:
    send(instance or the_one(), "go", "the go-ahead")
    work()


def _beside(work_beside: Callable[[UUID], object]) -> Callable[[], UUID]:
    """Started; while its activity runs, somebody does that."""

    def prepare() -> UUID:
        instance = start(programs.Beside, "the start")
        interrupt_with(lambda: work_beside(instance))
        return instance

    return prepare


def _take_over(_: UUID) -> None:
    """The activity's process stands still until its lease is over, and others go on."""
    pass_time(LEASE * 1.1)
    until_quiet()


def _cancel_beside(instance: UUID) -> None:
    request("cancel", instance)
    work()


def _pause_beside(instance: UUID) -> None:
    request("pause", instance)
    work()


def _work_and_go(instance: UUID | None) -> None:
    until_quiet()
    _go(instance)


def _work_and_cancel(instance: UUID | None) -> None:
    until_quiet()
    _cancel(instance)


def _work_resume_and_go(instance: UUID | None) -> None:
    until_quiet()
    request("resume", instance or the_one())
    _go(instance)


COMPLETED = frozenset({"completed"})
CANCELLED = frozenset({"cancelled"})

SCENARIOS = (
    Scenario(name="start", prepare=_nothing, operate=_start, ends=COMPLETED),
    Scenario(name="start in a transaction", prepare=_nothing, operate=_start_inside_a_transaction, ends=COMPLETED),
    Scenario(name="steps", prepare=_started(programs.Ladder), operate=_work, ends=COMPLETED),
    Scenario(name="signal", prepare=_parked(programs.Waiting), operate=_answer, ends=COMPLETED),
    Scenario(
        name="signal, looked at late", prepare=_parked(programs.Waiting), operate=_answer_and_be_late, ends=COMPLETED
    ),
    Scenario(name="signals", prepare=_parked(programs.Approvals), operate=_answer_and_another, ends=COMPLETED),
    Scenario(name="early signal", prepare=_nothing, operate=_answer_early, ends=COMPLETED),
    Scenario(name="timeout", prepare=_parked(programs.Waiting), operate=_wait_in_vain, ends=frozenset({"awaiting"})),
    Scenario(
        name="timeout, then signal",
        prepare=_parked(programs.Waiting),
        operate=_wait_in_vain_and_answer_late,
        ends=COMPLETED,
    ),
    Scenario(name="activities", prepare=_started(programs.Errands), operate=_work, ends=COMPLETED),
    Scenario(
        name="activity, once",
        prepare=_started(programs.OnlyOnce),
        operate=_work,
        ends=frozenset({"completed", "compensated"}),
    ),
    Scenario(name="undo", prepare=_started(programs.Saga), operate=_work, ends=frozenset({"compensated"})),
    Scenario(name="cancel", prepare=_parked(programs.Parked), operate=_cancel, ends=CANCELLED),
    Scenario(name="go", prepare=_parked(programs.Parked), operate=_go, ends=COMPLETED),
    Scenario(name="take-over", prepare=_beside(_take_over), operate=_work_and_go, ends=COMPLETED),
    Scenario(name="cancel beside", prepare=_beside(_cancel_beside), operate=_work_and_cancel, ends=CANCELLED),
    Scenario(name="pause beside", prepare=_beside(_pause_beside), operate=_work_resume_and_go, ends=COMPLETED),
    Scenario(name="signal beside", prepare=_beside(_go), operate=_work_and_go, ends=COMPLETED),
    Scenario(name="pause", prepare=_parked(programs.Waiting), operate=_pause_and_resume, ends=COMPLETED),
    Scenario(name="retry", prepare=_started(programs.Repaired), operate=_repair_and_retry, ends=COMPLETED),
    Scenario(name="rounds", prepare=_started(programs.Rounds), operate=_work, ends=COMPLETED),
    Scenario(name="rounds, pushed", prepare=_started(programs.Rounds), operate=_work, ends=COMPLETED, settings=PUSHING),
    Scenario(
        name="signal, pushed", prepare=_parked(programs.Waiting), operate=_answer, ends=COMPLETED, settings=PUSHING
    ),
    Scenario(
        name="undo, pushed",
        prepare=_started(programs.Saga),
        operate=_work,
        ends=frozenset({"compensated"}),
        settings=PUSHING,
    ),
)
