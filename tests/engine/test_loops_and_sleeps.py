from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from tests.shop.models import Effect
from tests.shop.workflows import leave_effect
from tests.support import error_of, events, kinds, later, settled
from workflow_engine import (
    Context,
    Finish,
    Goto,
    Outcome,
    Sleep,
    Workflow,
    clock,
    engine,
    step,
)


def test_a_goto_loop_visits_its_step_again_each_round() -> None:
    class Loop(Workflow):
        name = "loop"

        @step
        def count(self, ctx: Context) -> dict[str, Any]:
            leave_effect(ctx)
            return {"n": ctx.get("n", 0) + 1}

        @step(goes_to=("count",))
        def again(self, ctx: Context) -> Outcome | None:
            return Goto("count", updates={"back": ctx["n"]}) if ctx["n"] < 3 else None

    instance = settled(engine.start(Loop))

    assert (instance.status, instance.context) == ("completed", {"n": 3, "back": 2})
    assert list(Effect.objects.order_by("id").values_list("visit", flat=True)) == [1, 3, 5]
    assert [event.data.get("goto") for event in events(instance, "step_completed")] == [
        None,
        "count",
        None,
        "count",
        None,
        None,
    ]


def test_a_goto_to_itself_is_a_new_visit_with_another_idempotency_key() -> None:
    keys: list[str] = []

    class Loop(Workflow):
        name = "loop"

        @step
        def turn(self, ctx: Context) -> Outcome | None:
            keys.append(ctx.idempotency_key)
            return Goto("turn") if ctx.visit < 3 else None

    settled(engine.start(Loop))

    assert len(set(keys)) == 3


def test_finish_ends_the_workflow_from_any_step() -> None:
    class Ends(Workflow):
        name = "ends"

        @step
        def first(self, ctx: Context) -> Outcome:
            return Finish({"sold": 0}, updates={"why": "empty"})

        @step
        def never(self, ctx: Context) -> None:
            leave_effect(ctx)

    instance = settled(engine.start(Ends))

    assert (instance.status, instance.result, instance.context) == ("completed", {"sold": 0}, {"why": "empty"})
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_completed"]
    assert not Effect.objects.exists()


@override_settings(WORKFLOW_ENGINE={"MAX_VISITS_WITHOUT_PARKING": 7})
def test_a_loop_without_a_wait_fails_clearly() -> None:
    class Loop(Workflow):
        name = "loop"

        @step
        def ping(self, ctx: Context) -> Outcome:
            return Goto("pong")

        @step
        def pong(self, ctx: Context) -> Outcome:
            return Goto("ping")

    instance = settled(engine.start(Loop))

    assert instance.status == "failed"
    kind, message = error_of(instance)
    assert kind == "VisitLimitError"
    assert message == (
        "7 steps were entered without the workflow ever waiting, last 'ping': this looks like an endless Goto loop."
        " Let the loop Sleep or Await, or raise WORKFLOW_ENGINE['MAX_VISITS_WITHOUT_PARKING']."
    )
    assert (instance.visit, len(events(instance, "step_completed"))) == (7, 6)


@override_settings(WORKFLOW_ENGINE={"MAX_VISITS_WITHOUT_PARKING": 3})
def test_a_loop_that_waits_may_go_on_for_ever() -> None:
    class Loop(Workflow):
        name = "loop"

        @step
        def nap(self, ctx: Context) -> Outcome:
            return Sleep(60)

        @step
        def back(self, ctx: Context) -> Outcome:
            return Goto("nap")

    instance = settled(engine.start(Loop))
    for _ in range(10):
        instance = later(instance, seconds=61)

    assert (instance.status, instance.visit) == ("sleeping", 21)


def test_a_sleep_for_a_while_ends_the_step_when_it_is_over() -> None:
    class Naps(Workflow):
        name = "naps"

        @step
        def nap(self, ctx: Context) -> Outcome:
            leave_effect(ctx)
            return Sleep(timedelta(days=3), updates={"tired": True})

        @step
        def work(self, ctx: Context) -> None:
            leave_effect(ctx)

    instance = settled(engine.start(Naps))
    assert (instance.status, instance.context) == ("sleeping", {"tired": True})
    assert instance.due_at == instance.poll_at == events(instance)[-1].created_at + timedelta(days=3)

    assert later(instance, days=2, hours=23).status == "sleeping"
    instance = later(instance, hours=2)

    assert instance.status == "completed"
    assert [(effect.step, effect.visit) for effect in Effect.objects.order_by("id")] == [("nap", 1), ("work", 2)]
    woken = events(instance, "step_completed")[0]
    assert (woken.step, woken.trigger) == ("nap", "timer")


def test_a_sleep_until_a_moment_ends_at_that_moment() -> None:
    until = (clock.now("default") + timedelta(days=1)).astimezone(tz=None)

    class Naps(Workflow):
        name = "naps"

        @step
        def nap(self, ctx: Context) -> Outcome:
            return Sleep(until)

    instance = settled(engine.start(Naps))

    assert (instance.status, instance.due_at) == ("sleeping", until)
    assert later(instance, hours=23).status == "sleeping"
    assert later(instance, hours=2).status == "completed"


@pytest.mark.parametrize("moment", [0, timedelta(0), "yesterday"])
def test_a_sleep_that_is_over_at_once_parks_and_goes_on(moment: Any) -> None:
    class Naps(Workflow):
        name = "naps"

        @step
        def nap(self, ctx: Context) -> Outcome:
            return Sleep(ctx.now - timedelta(days=1) if moment == "yesterday" else moment)

    instance = settled(engine.start(Naps))

    assert kinds(instance) == ["workflow_started", "workflow_slept", "step_completed", "workflow_completed"]
