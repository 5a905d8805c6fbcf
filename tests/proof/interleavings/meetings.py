"""Who meets whom: what two or three do at once, and what the instances must come to, in whatever order they do it.

`prepare` runs undisturbed, in the main thread, and answers with what each thread is to do. Whatever is due then runs by
itself. `ends` are the statuses that all instances must reach. `settle` runs when all threads have ended, and says what
is wrong beyond what the checker sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from tests.proof import broker, ledger, programs
from tests.proof.clients import request, send
from tests.proof.interleavings.crossing import COUNTERS, ROUNDS, Crossing
from tests.proof.interleavings.dawdling import Dawdling, DawdlingBack
from tests.proof.interleavings.scheduler import Work
from tests.proof.interleavings.works import (
    advancing,
    both,
    driving,
    fresh,
    interrupted,
    parked,
    pruning,
    requesting,
    sending,
    starting,
    starting_inside_a_transaction,
    time_passes,
    unless_it_is_gone,
    working,
)
from tests.proof.recovery import pass_time, until_quiet
from tests.proof.scenarios import HOUR, PUSHING
from tests.shop.models import Counter, Effect
from workflow_engine.models import WorkflowInstance
from workflow_engine.tick import tick


def _nothing_more() -> Iterator[str]:
    yield from ()


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One row of the campaign."""

    name: str
    prepare: Callable[[], Mapping[str, Work]]
    ends: frozenset[str]
    settle: Callable[[], Iterator[str]] = _nothing_more
    settings: Mapping[str, Any] = field(default_factory=dict)


def _two_advance() -> Mapping[str, Work]:
    instance = fresh(programs.Ladder)
    return {"one": advancing(instance), "other": advancing(instance)}


def _two_drive_and_one_advances() -> Mapping[str, Work]:
    instance = fresh(programs.Errands)
    return {"one": driving(instance), "other": driving(instance), "third": advancing(instance)}


def _advance_and_signal() -> Mapping[str, Work]:
    instance = fresh(programs.Waiting)
    return {"driver": driving(instance), "sender": partial(send, instance, "yes", "the answer")}


def _two_signals_and_a_driver() -> Mapping[str, Work]:
    instance = parked(programs.Approvals)
    return {
        "first": sending(instance, "approved", "the first"),
        "second": sending(instance, "approved", "the second"),
        "driver": driving(instance),
    }


def _one_signal_twice() -> Mapping[str, Work]:
    instance = parked(programs.Waiting)
    return {"one": sending(instance, "yes", "the answer"), "again": sending(instance, "yes", "the answer")}


def _signal_and_timeout() -> Mapping[str, Work]:
    instance = parked(programs.Waiting)
    pass_time(timedelta(seconds=HOUR + 1))
    return {
        "driver": driving(instance),
        "sender": sending(instance, "yes", "the answer"),
        "other sender": partial(send, instance, "no", "another answer"),
    }


def _signal_and_end() -> Mapping[str, Work]:
    instance = parked(programs.Waiting)
    send(instance, "yes", "the answer")
    return {
        "driver": driving(instance),
        "sender": sending(instance, "no", "too late"),
        "canceller": requesting("cancel", instance),
    }


def _advance_and_cancel() -> Mapping[str, Work]:
    instance = fresh(programs.Saga)
    return {"driver": driving(instance), "canceller": requesting("cancel", instance)}


def _go_and_cancel() -> Mapping[str, Work]:
    instance = parked(programs.Parked)
    return {"sender": sending(instance, "go", "the go-ahead"), "canceller": requesting("cancel", instance)}


def _cancel_beside_a_lease() -> Mapping[str, Work]:
    instance = interrupted(programs.Beside)
    return {"driver": driving(instance), "canceller": requesting("cancel", instance), "other": driving(instance)}


def _take_over(program: Any) -> Mapping[str, Work]:
    instance = interrupted(program)
    return {"holder": driving(instance), "next": both(time_passes, driving(instance))}


def _take_over_of_a_slow_one(program: Any) -> Mapping[str, Work]:
    """Its time is over again and again, so that of three holders none knows which of them is the last."""
    instance = fresh(program)
    late = both(time_passes, driving(instance))
    return {"holder": driving(instance), "next": both(late, late), "third": late}


def _take_over_of_a_last_attempt() -> Mapping[str, Work]:
    instance = fresh(programs.OnlyOnce)
    return {"holder": driving(instance), "next": both(time_passes, driving(instance))}


def _take_over_by_a_worker() -> Mapping[str, Work]:
    interrupted(programs.Beside)
    return {"holder": working(), "next": both(time_passes, working()), "third": working()}


def _due_and_not_handed_out() -> list[UUID]:
    instances = [fresh(programs.Ladder, f"start {number}") for number in range(4)]
    broker.jobs.clear()
    pass_time(timedelta(minutes=2))
    return instances


def _two_ticks() -> Mapping[str, Work]:
    _due_and_not_handed_out()
    return {"one": partial(tick, "default"), "other": partial(tick, "default")}


def _each_is_handed_out_once() -> Iterator[str]:
    for instance in WorkflowInstance.objects.values_list("pk", flat=True):
        if broker.jobs.count(instance) != 1:
            yield f"{instance} was handed out {broker.jobs.count(instance)} times"


def _tick_and_late_deliveries() -> Mapping[str, Work]:
    instances = _due_and_not_handed_out()
    return {"tick": partial(tick, "default"), "consumer": both(*map(driving, instances))}


def _two_starts() -> Mapping[str, Work]:
    return {"one": starting("the start"), "other": starting("the start"), "third": starting("the start")}


def _two_starts_inside_transactions() -> Mapping[str, Work]:
    return {
        "one": starting_inside_a_transaction("a", "b"),
        "other": starting_inside_a_transaction("b", "a"),
        "third": starting("a"),
    }


def _start_beside_one_that_is_rolled_back() -> Mapping[str, Work]:
    return {"fails": starting_inside_a_transaction("a", fails=True), "other": starting_inside_a_transaction("a")}


def _two_undo() -> Mapping[str, Work]:
    instance = parked(programs.Parked)
    request("cancel", instance)
    return {"one": advancing(instance, 6), "other": advancing(instance, 6), "third": driving(instance)}


def _failed_for_now() -> UUID:
    instance = parked(programs.Repaired)
    Counter.objects.create(name="repaired")
    return instance


def _two_retry() -> Mapping[str, Work]:
    instance = _failed_for_now()
    return {"one": requesting("retry", instance), "other": requesting("retry", instance)}


def _prune_and_signal() -> Mapping[str, Work]:
    instance = parked(programs.Waiting)
    send(instance, "yes", "the answer")
    return {
        "driver": driving(instance),
        "sender": unless_it_is_gone(sending(instance, "no", "too late")),
        "pruner": both(*[pruning(with_failed=False)] * 3),
    }


def _prune_and_retry() -> Mapping[str, Work]:
    instance = _failed_for_now()
    return {
        "retry": unless_it_is_gone(requesting("retry", instance)),
        "pruner": both(*[pruning(with_failed=True)] * 2),
    }


def _forget_what_was_pruned() -> Iterator[str]:
    """The checker is to judge those that are still there; but nothing of the others may be left."""
    there = {str(pk) for pk in WorkflowInstance.objects.values_list("pk", flat=True)}
    ledger.replace([entry for entry in ledger.read() if entry.get("instance", "") in {"", *there}])
    Effect.objects.exclude(instance_id__in=there).delete()
    yield from ()


def _pause_and_advance() -> Mapping[str, Work]:
    instance = fresh(programs.Ladder)
    return {
        "driver": driving(instance),
        "operator": both(requesting("pause", instance), requesting("resume", instance)),
    }


def _pause_and_signal() -> Mapping[str, Work]:
    instance = parked(programs.Waiting)
    return {
        "sender": sending(instance, "yes", "the answer"),
        "operator": both(requesting("pause", instance), requesting("resume", instance)),
    }


def _resume() -> Iterator[str]:
    """Who resumed before the pause was carried out was refused, and asks again."""
    until_quiet()
    for instance in WorkflowInstance.objects.filter(paused=True):
        request("resume", instance.pk)
    yield from ()


def _two_workers() -> Mapping[str, Work]:
    for number, program in enumerate([programs.Ladder, programs.Errands, programs.Ladder]):
        fresh(program, f"start {number}")
    return {"one": working(), "other": working()}


def _two_workers_after_a_death() -> Mapping[str, Work]:
    """Somebody held it and has gone; those who come now both suspect that."""
    instance = fresh(programs.Ladder)
    WorkflowInstance.objects.filter(pk=instance).update(suspect=True)
    return {"one": working(), "other": driving(instance), "third": working()}


def _two_that_wait_for_each_other() -> Mapping[str, Work]:
    for name in COUNTERS:
        Counter.objects.create(name=name)
    return {name: driving(fresh(Crossing, name)) for name in ("left first", "right first")}


def _each_has_counted_once() -> Iterator[str]:
    until_quiet()
    for counter in Counter.objects.filter(name__in=COUNTERS).exclude(value=2 * ROUNDS):
        yield f"the counter {counter.name} is {counter.value}"


COMPLETED = frozenset({"completed"})
COMPENSATED = frozenset({"compensated"})
CANCELLED = frozenset({"cancelled"})

MEETINGS = (
    Meeting(name="advance, advance", prepare=_two_advance, ends=COMPLETED),
    Meeting(name="drive, drive, advance", prepare=_two_drive_and_one_advances, ends=COMPLETED),
    Meeting(name="advance, signal", prepare=_advance_and_signal, ends=COMPLETED),
    Meeting(name="signal, signal, drive", prepare=_two_signals_and_a_driver, ends=COMPLETED),
    Meeting(name="one signal twice", prepare=_one_signal_twice, ends=COMPLETED),
    Meeting(name="signal, timeout", prepare=_signal_and_timeout, ends=COMPLETED),
    Meeting(name="signal, end, cancel", prepare=_signal_and_end, ends=COMPLETED | CANCELLED),
    Meeting(name="advance, cancel", prepare=_advance_and_cancel, ends=COMPENSATED | CANCELLED),
    Meeting(name="go, cancel", prepare=_go_and_cancel, ends=COMPLETED | CANCELLED),
    Meeting(name="cancel, lease", prepare=_cancel_beside_a_lease, ends=CANCELLED),
    Meeting(name="take-over, heartbeat", prepare=partial(_take_over, programs.Beside), ends=frozenset({"awaiting"})),
    Meeting(name="take-over, late completion", prepare=partial(_take_over, programs.Errands), ends=COMPLETED),
    Meeting(name="take-over, slow", prepare=partial(_take_over_of_a_slow_one, Dawdling), ends=COMPLETED),
    Meeting(name="take-over, undo", prepare=partial(_take_over_of_a_slow_one, DawdlingBack), ends=COMPENSATED),
    Meeting(name="take-over, last attempt", prepare=_take_over_of_a_last_attempt, ends=COMPLETED | COMPENSATED),
    Meeting(name="take-over, workers", prepare=_take_over_by_a_worker, ends=frozenset({"awaiting"})),
    Meeting(name="tick, tick", prepare=_two_ticks, ends=COMPLETED, settle=_each_is_handed_out_once, settings=PUSHING),
    Meeting(name="tick, delivery", prepare=_tick_and_late_deliveries, ends=COMPLETED, settings=PUSHING),
    Meeting(name="start, start", prepare=_two_starts, ends=COMPLETED),
    Meeting(name="starts in transactions", prepare=_two_starts_inside_transactions, ends=COMPLETED),
    Meeting(name="start, rollback", prepare=_start_beside_one_that_is_rolled_back, ends=COMPLETED),
    Meeting(name="undo, undo", prepare=_two_undo, ends=CANCELLED),
    Meeting(name="retry, retry", prepare=_two_retry, ends=COMPLETED),
    Meeting(name="prune, signal", prepare=_prune_and_signal, ends=COMPLETED, settle=_forget_what_was_pruned),
    Meeting(name="prune, retry", prepare=_prune_and_retry, ends=COMPLETED, settle=_forget_what_was_pruned),
    Meeting(name="pause, advance", prepare=_pause_and_advance, ends=COMPLETED, settle=_resume),
    Meeting(name="pause, signal", prepare=_pause_and_signal, ends=COMPLETED, settle=_resume),
    Meeting(name="worker, worker", prepare=_two_workers, ends=COMPLETED),
    Meeting(name="worker, suspect", prepare=_two_workers_after_a_death, ends=COMPLETED),
    Meeting(name="deadlock", prepare=_two_that_wait_for_each_other, ends=COMPLETED, settle=_each_has_counted_once),
)
