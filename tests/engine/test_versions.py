from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from tests.support import data_of, error_of, events, kinds, later, mailbox, seconds_until, settled
from workflow_engine import Await, Context, Goto, Outcome, RetryPolicy, Signal, Workflow, activity, clock, engine, step
from workflow_engine.domain.registry import registry
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain, reload


def define(number: int, *keys: str, says: str = "") -> type[Workflow[Any]]:
    """A version of the workflow "parcel" with these steps; "wait" awaits "go", the others note `says`."""

    def wait(self: object, ctx: Context) -> Outcome:
        return Await("go")

    def note(self: object, ctx: Context) -> dict[str, Any]:
        return {ctx.step: says or f"version {number}"}

    steps = {key: step(wait if key == "wait" else note) for key in keys}
    return type(f"Parcel{number}", (Workflow,), {"name": "parcel", "version": number, "__module__": __name__, **steps})


@contextmanager
def other_code() -> Iterator[None]:
    """A process that knows nothing of what was defined before, and is gone afterwards."""
    with registry.isolated():
        for name in ("parcel", "stray"):
            for number in registry.versions(name):
                del registry._classes[name, number]
        yield


def test_an_instance_runs_on_the_version_it_was_started_with_beside_newer_ones() -> None:
    define(1, "wait", "pack")
    old = settled(engine.start("parcel"))
    define(2, "wait", "wrap", "pack")
    new = settled(engine.start("parcel"))
    for instance in (old, new):
        engine.signal(instance, "go")
    drain()

    assert reload(old).context == {"pack": "version 1"}
    assert reload(new).context == {"wrap": "version 2", "pack": "version 2"}
    assert (reload(old).definition_version, reload(new).definition_version) == (1, 2)


def test_an_instance_finishes_on_the_sequence_it_started_with_when_its_code_gets_another_one() -> None:
    define(1, "wait", "pack", "ship")
    instance = settled(engine.start("parcel"))
    with other_code():
        define(1, "ship", "wait", "wrap", "pack")
        engine.signal(instance, "go")
        instance = settled(instance)

    assert (instance.status, instance.step_sequence) == ("completed", ["wait", "pack", "ship"])
    assert [event.step for event in events(instance, "step_completed")] == ["wait", "pack", "ship"]


def test_a_version_that_is_gone_is_replaced_by_the_newest_that_has_the_remaining_steps_and_history_says_so() -> None:
    define(1, "look", "wait", "pack", "ship")
    instance = settled(engine.start("parcel"))
    engine.signal(instance, "go")
    with other_code():
        define(2, "wait", "ship", "pack")
        define(3, "wait", "pack")
        instance = settled(instance)

    assert (instance.status, instance.definition_version) == ("completed", 2)
    assert instance.context == {"look": "version 1", "pack": "version 2", "ship": "version 2"}
    assert len(events(instance, "version_changed")) == 1
    assert data_of(events(instance, "version_changed")[0], "set") == {"definition_version": 2}


@override_settings(WORKFLOW_ENGINE={"POSTPONE": 600})
@pytest.mark.parametrize("known", [True, False])
def test_an_instance_that_no_code_here_can_run_is_left_to_others_with_its_mail_kept(known: bool) -> None:
    define(1, "pack", "wait", "ship")
    instance = engine.start("parcel")
    engine.signal(instance, "go")
    with other_code():
        if known:
            define(2, "wait", "ship")
        for _ in range(3):
            engine.drive(instance)

        row = reload(instance)
        assert (row.status, row.attempts, row.error, row.recoveries) == ("pending", 0, None, 0)
        assert row.poll_at is not None
        assert seconds_until(row.poll_at) in range(590, 601)
        assert mailbox(row) == [("go", "buffered")]

    clock.shift(timedelta(seconds=600))
    instance = settled(instance)
    assert (instance.status, instance.context) == ("completed", {"pack": "version 1", "ship": "version 1"})


def test_an_instance_that_no_code_here_can_run_is_never_poison_however_long_that_lasts() -> None:
    define(1, "pack", "ship")
    instance = engine.start("parcel")
    with other_code():
        define(2, "pack")
        for _ in range(20):
            clock.shift(timedelta(minutes=2))
            drain()
            engine.drive(instance)

    row = reload(instance)
    assert (row.status, row.recoveries, kinds(row)) == ("pending", 0, ["workflow_started"])
    clock.shift(timedelta(minutes=2))
    assert settled(instance).status == "completed"


def test_a_worker_does_not_even_hold_what_it_knows_nothing_of() -> None:
    define(1, "pack")
    instance = engine.start("parcel")
    before = WorkflowInstance.objects.filter(pk=instance.pk).values().get()
    with other_code():
        assert drain() == 0

    assert WorkflowInstance.objects.filter(pk=instance.pk).values().get() == before


def test_an_advance_says_that_there_is_no_code() -> None:
    define(1, "pack")
    instance = engine.start("parcel")
    with other_code():
        assert engine.advance(instance).answer == Answer.NO_CODE


def test_a_class_that_lost_the_current_step_without_a_new_version_fails_nothing() -> None:
    define(1, "wait", "pack")
    instance = settled(engine.start("parcel"))
    engine.signal(instance, "go")
    with other_code():
        define(1, "pack")
        assert settled(instance).status == "awaiting"

    clock.shift(timedelta(minutes=2))
    assert settled(instance).status == "completed"


@pytest.mark.parametrize("request_first", [True, False])
def test_requests_are_carried_out_without_code(request_first: bool) -> None:
    define(1, "wait", "pack")
    instance = engine.start("parcel") if request_first else settled(engine.start("parcel"))
    engine.cancel(instance)
    with other_code():
        assert settled(instance).status == "cancelled"


class Stray:
    """Version 1 has no "late" step; its class got one since, and goes there."""

    def __init__(self) -> None:
        class Early(Workflow):
            name = "stray"

            @step
            def begin(self, ctx: Context) -> None: ...

        self.early = Early

    def define_late(self, *, as_activity: bool = False, from_signal: bool = False) -> list[int]:
        calls: list[int] = []

        class Late(Workflow):
            name = "stray"
            __qualname__ = self.early.__qualname__

            @(activity if as_activity else step)(retry=RetryPolicy(max_attempts=3, initial_delay=10, jitter=False))
            def begin(self, ctx: Context) -> Outcome:
                calls.append(ctx.attempt)
                return Await("go") if from_signal else Goto("late")

            @begin.on_signal
            def went(self, ctx: Context, signal: Signal) -> Outcome:
                return Goto("late")

            @step
            def late(self, ctx: Context) -> None: ...

        return calls


@override_settings(WORKFLOW_ENGINE={"POSTPONE": 600})
def test_a_goto_outside_the_snapshot_is_left_to_others_and_counts_nothing() -> None:
    stray = Stray()
    instance = engine.start(stray.early)
    with other_code():
        calls = stray.define_late()
        drain()

        row = reload(instance)
        assert (row.status, row.attempts, row.error, kinds(row)) == ("pending", 0, None, ["workflow_started"])
        assert seconds_until(row.poll_at) in range(590, 601)
        assert calls == [1]

    clock.shift(timedelta(seconds=600))
    assert settled(instance).status == "completed"


def test_a_goto_outside_the_snapshot_from_a_signals_handler_keeps_the_signal() -> None:
    stray = Stray()
    instance = engine.start(stray.early)
    with other_code():
        stray.define_late(from_signal=True)
        settled(instance)
        engine.signal(instance, "go")
        instance = settled(instance)

        assert (instance.status, mailbox(instance)) == ("awaiting", [("go", "buffered")])


def test_a_goto_outside_the_snapshot_from_an_activity_is_a_failed_attempt_because_it_ran() -> None:
    stray = Stray()
    instance = engine.start(stray.early)
    with other_code():
        calls = stray.define_late(as_activity=True)
        instance = settled(instance)

        assert (instance.status, instance.attempts, calls) == ("in_progress", 1, [1])
        kind, message = error_of(instance)
        assert kind == "PostponedError"
        assert message == (
            "Step 'begin' goes to 'late', which the instance's step sequence does not have. It is left to a worker that"
            " has the version it started with."
        )
        instance = later(instance, seconds=11)
        assert calls == [1, 2]

    assert later(instance, seconds=21).status == "completed"


def test_a_goto_to_a_stranger_fails_the_step_with_the_steps_there_are() -> None:
    class Lost(Workflow):
        name = "lost"

        @step
        def one(self, ctx: Context) -> Outcome:
            return Goto("nowhere")

        @step
        def two(self, ctx: Context) -> None: ...

    instance = settled(engine.start(Lost))

    assert (instance.status, error_of(instance)) == (
        "failed",
        (
            "UndeclaredGotoError",
            "Step 'one' returned Goto('nowhere'), which is not among the steps it may go to: one, two.",
        ),
    )


def test_a_goto_that_is_not_declared_fails_the_step_with_what_is() -> None:
    class Lost(Workflow):
        name = "lost"

        @step(goes_to=("two",))
        def one(self, ctx: Context) -> Outcome:
            return Goto("three")

        @step
        def two(self, ctx: Context) -> None: ...

        @step
        def three(self, ctx: Context) -> None: ...

    assert error_of(settled(engine.start(Lost))) == (
        "UndeclaredGotoError",
        "Step 'one' returned Goto('three'), which is not among the steps it may go to: two.",
    )
