from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from tests.shop.models import Effect
from tests.shop.workflows import CountUp, OneStep, WaitForGo
from tests.support import data_of, events, settled
from workflow_engine import (
    Complete,
    Context,
    Goto,
    InstanceNotFoundError,
    Outcome,
    Workflow,
    clock,
    engine,
    step,
)
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain, reload


def test_an_advance_takes_one_step_and_leaves_the_next_one_due() -> None:
    instance = engine.start(CountUp)

    advanced = engine.advance(instance)

    instance = reload(instance)
    assert (advanced.answer, advanced.more) == (Answer.ADVANCED, True)
    assert (instance.status, instance.current_step, instance.step_index, instance.visit) == (
        "in_progress",
        "second",
        1,
        2,
    )
    assert [effect.step for effect in Effect.objects.all()] == ["first"]
    assert instance.due_at is not None
    assert instance.poll_at == instance.due_at


def test_a_drive_goes_on_until_the_instance_parks_or_ends() -> None:
    waiting, ending = engine.start(WaitForGo), engine.start(CountUp)

    assert engine.drive(waiting).answer == Answer.ADVANCED
    assert engine.drive(ending) == engine.driving.Driven(3, Answer.ADVANCED)

    assert reload(waiting).status == "awaiting"
    assert reload(ending).status == "completed"
    assert [effect.step for effect in Effect.objects.order_by("id")] == ["first", "second", "third"]


@override_settings(WORKFLOW_ENGINE={"DRIVE_STEPS": 2})
def test_a_drive_gives_others_a_turn_when_its_budget_is_spent() -> None:
    instance = engine.start(CountUp)

    assert engine.drive(instance).turns == 2

    row = reload(instance)
    assert (row.status, row.current_step, row.suspect) == ("in_progress", "third", False)
    assert row.poll_at == row.due_at
    assert settled(instance).status == "completed"


def test_a_drive_that_is_asked_to_stop_gives_the_instance_back_after_the_step() -> None:
    instance = engine.start(CountUp)

    engine.driving.drive(instance.pk, "default", stop=lambda: True)

    row = reload(instance)
    assert (row.current_step, row.poll_at, row.suspect) == ("second", row.due_at, False)


def test_an_instance_with_nothing_to_do_answers_why() -> None:
    parked, ended = settled(engine.start(WaitForGo)), settled(engine.start(OneStep))
    paused = engine.start(OneStep)
    engine.pause(paused)
    paused = settled(paused)

    before = [row.version for row in (parked, ended, paused)]
    answers = [engine.advance(row).answer for row in (parked, ended, paused)]

    assert answers == [Answer.NOT_DUE, Answer.ENDED, Answer.PAUSED]
    assert [reload(row).version for row in (parked, ended, paused)] == before


def test_advancing_twice_does_nothing_twice() -> None:
    instance = engine.start(CountUp)
    for _ in range(10):
        engine.advance(instance)

    assert reload(instance).status == "completed"
    assert Effect.objects.count() == 3


@pytest.mark.parametrize("missing", ["no id at all", "01a22cf7-845d-73f4-9f3c-59a17834d302"])
def test_an_unknown_id_is_an_error_that_names_it_and_the_database(missing: str) -> None:
    for verb in (engine.advance, engine.drive, engine.cancel, engine.pause, engine.resume, engine.retry):
        with pytest.raises(InstanceNotFoundError) as raised:
            verb(missing)
        assert str(raised.value) == f"No workflow instance '{missing}' in database 'default'."


def test_an_instance_can_be_named_by_its_id_as_text() -> None:
    instance = engine.start(OneStep)

    engine.drive(str(instance.pk))

    assert reload(instance).status == "completed"


def test_a_step_gets_the_circumstances_of_its_attempt() -> None:
    seen: list[Context] = []

    class Looks(Workflow):
        name = "looks"

        @step
        def first(self, ctx: Context) -> dict[str, Any]:
            return {"a": 2}

        @step
        def look(self, ctx: Context) -> None:
            seen.append(ctx)

    instance = engine.start(Looks, context={"a": 1}, tenant="acme")
    settled(instance)

    (ctx,) = seen
    assert (dict(ctx), dict(ctx.input)) == ({"a": 2}, {"a": 1})
    assert (ctx.workflow, ctx.step, ctx.visit, ctx.attempt) == ("looks", "look", 2, 1)
    assert (ctx.instance_id, ctx.tenant, ctx.deadline, ctx.lease) == (instance.pk, "acme", None, None)
    assert abs(ctx.now - clock.now("default")) < timedelta(minutes=10)


def test_results_are_kept_by_step_and_the_newest_counts() -> None:
    seen: list[dict[str, Any]] = []

    class Results(Workflow):
        name = "results"

        @step
        def one(self, ctx: Context) -> Outcome:
            return Complete({"n": ctx.get("n", 0) + 1}, result={"round": ctx.visit})

        @step
        def two(self, ctx: Context) -> dict[str, Any]:
            return {"merged": True}

        @step
        def three(self, ctx: Context) -> None: ...

        @step
        def four(self, ctx: Context) -> Outcome | None:
            seen.append(dict(ctx.results))
            return Goto("one") if ctx["n"] < 2 else None

    settled(engine.start(Results))

    assert seen == [
        {"one": {"round": 1}, "two": {"merged": True}},
        {"one": {"round": 5}, "two": {"merged": True}},
    ]


def test_every_event_tells_when_it_was_and_how_long_the_users_code_ran() -> None:
    instance = settled(engine.start(CountUp))

    completed = events(instance, "step_completed")
    assert [event.attempt for event in completed] == [1, 1, 1]
    assert all(event.duration is not None and timedelta(0) < event.duration < timedelta(hours=1) for event in completed)
    moments = [event.created_at for event in events(instance)]
    assert moments == sorted(moments)
    assert instance.finished_at == moments[-1]


def test_updates_are_told_in_the_history_whole() -> None:
    instance = settled(engine.start(OneStep))

    assert data_of(events(instance, "step_completed")[0], "updates") == {"done": True}


def test_a_value_that_only_changes_its_type_is_a_change() -> None:
    class Retypes(Workflow):
        name = "retypes"

        @step
        def retype(self, ctx: Context) -> dict[str, Any]:
            return {"flag": True, "amount": 1.5, "n": 1}

    instance = settled(engine.start(Retypes, context={"flag": 1, "amount": 1.5, "n": 1}))

    assert instance.context["flag"] is True


def test_one_instance_that_fails_does_not_keep_others_from_their_work() -> None:
    class Fails(Workflow):
        name = "fails"

        @step
        def fail(self, ctx: Context) -> None:
            raise RuntimeError("no")

    failing = [engine.start(Fails) for _ in range(3)]
    fine = [engine.start(CountUp) for _ in range(3)]

    drain()

    assert {reload(instance).status for instance in failing} == {"in_progress"}
    assert {reload(instance).status for instance in fine} == {"completed"}
    assert WorkflowInstance.objects.count() == 6


def test_a_workflow_that_can_not_be_made_fails_its_instance_and_not_the_worker() -> None:
    class NeedsMore(Workflow):
        name = "needs_more"

        def __init__(self, gateway: str) -> None:
            self.gateway = gateway

        @step
        def work(self, ctx: Context) -> None: ...

    failing, fine = engine.start(NeedsMore), engine.start(OneStep)

    drain()

    assert reload(fine).status == "completed"
    assert reload(failing).error is not None
