from __future__ import annotations

from decimal import Decimal

import pytest
from django.contrib.auth import get_user_model

from tests.shop.models import Counter
from tests.shop.workflows import OneStep
from tests.support import events, kinds, settled
from workflow_engine import Context, IdempotencyConflictError, UnknownWorkflowError, Workflow, engine, step
from workflow_engine.models import WorkflowInstance


def test_a_started_instance_is_a_row_that_is_due_now_and_has_not_run() -> None:
    instance = engine.start(OneStep, context={"amount": Decimal("4.20")}, actor="cron", tenant="acme", queue="slow")

    row = WorkflowInstance.objects.get()
    assert row == instance
    assert (row.workflow_name, row.definition_version, row.tenant, row.queue) == ("one_step", 1, "acme", "slow")
    assert (row.status, row.current_step, row.step_index, row.visit) == ("pending", "only", 0, 1)
    assert row.step_sequence == ["only"]
    assert (row.input, row.context) == ({"amount": "4.20"}, {"amount": "4.20"})
    assert row.due_at == row.poll_at == row.created_at
    assert (row.started_at, row.finished_at) == (None, None)
    (event,) = events(row)
    assert (event.kind, event.seq, event.attempt, event.actor) == ("workflow_started", 1, 0, "cron")


def test_the_instance_that_start_returns_is_the_row_as_it_is_stored() -> None:
    instance = engine.start("one_step", subject=("shop.order", 42), context={"n": 1}, idempotency_key="k")

    stored = WorkflowInstance.objects.get()
    columns = [field.attname for field in WorkflowInstance._meta.concrete_fields]
    assert {name: getattr(instance, name) for name in columns} == {name: getattr(stored, name) for name in columns}


def test_a_started_instance_runs_to_its_end() -> None:
    instance = settled(engine.start("one_step", context={"n": 1}))

    assert (instance.status, instance.context, instance.result) == ("completed", {"n": 1, "done": True}, {"done": True})
    assert instance.input == {"n": 1}
    assert instance.due_at is instance.poll_at is None
    assert instance.finished_at is not None
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_completed"]


def test_the_same_key_with_the_same_values_is_the_same_instance_even_when_it_has_ended() -> None:
    first = engine.start(OneStep, subject=("shop.order", 1), context={"a": 1, "b": 2.0}, idempotency_key="order-1")
    again = engine.start("one_step", subject=("shop.order", "1"), context={"b": 2, "a": 1}, idempotency_key="order-1")
    settled(first)
    afterwards = engine.start(OneStep, subject=("shop.order", 1), context={"a": 1, "b": 2}, idempotency_key="order-1")

    assert first.pk == again.pk == afterwards.pk
    assert afterwards.status == "completed"
    assert WorkflowInstance.objects.count() == 1
    assert kinds(afterwards) == ["workflow_started", "step_completed", "workflow_completed"]


def test_the_same_key_with_another_context_is_an_error_that_carries_the_instance() -> None:
    first = engine.start(OneStep, context={"a": 1}, idempotency_key="order-1")

    with pytest.raises(IdempotencyConflictError) as raised:
        engine.start(OneStep, context={"a": 2}, idempotency_key="order-1")

    assert str(raised.value) == (
        f"The idempotency key 'order-1' already belongs to workflow instance {first.pk}, with another context."
        " Use the same values to get that instance, or another key for another one."
    )
    assert raised.value.instance == first
    assert WorkflowInstance.objects.count() == 1


def test_the_same_key_for_another_subject_is_an_error_that_names_the_subject() -> None:
    first = engine.start(OneStep, subject=("shop.order", 1), idempotency_key="order-1")

    with pytest.raises(IdempotencyConflictError) as raised:
        engine.start(OneStep, subject=("shop.order", 2), idempotency_key="order-1")

    assert str(raised.value) == (
        f"The idempotency key 'order-1' already belongs to workflow instance {first.pk}, with another subject,"
        " shop.order:1. Use the same values to get that instance, or another key for another one."
    )
    assert raised.value.instance == first


@pytest.mark.parametrize("other", ["Order-1", "order-1 ", "ördèr-1", "order-\N{FULLWIDTH DIGIT ONE}", " "])
def test_keys_that_a_database_might_take_for_one_are_different_keys(other: str) -> None:
    instances = [engine.start(OneStep, idempotency_key=key) for key in ("order-1", other)]

    assert instances[0].pk != instances[1].pk


def test_tenants_and_workflows_have_keys_of_their_own() -> None:
    class Other(Workflow):
        name = "other"

        @step
        def only(self, ctx: Context) -> None: ...

    one = engine.start(OneStep, idempotency_key="k")
    tenants = [engine.start(OneStep, idempotency_key="k", tenant=tenant) for tenant in ("a", "b", "b")]
    other = engine.start(Other, idempotency_key="k")

    assert len({one.pk, other.pk, *(instance.pk for instance in tenants)}) == 4
    assert tenants[1].pk == tenants[2].pk


def test_without_a_key_every_start_is_an_instance_of_its_own() -> None:
    assert engine.start(OneStep).pk != engine.start(OneStep).pk


def test_a_name_stands_for_the_newest_version_and_another_one_can_be_asked_for() -> None:
    define_versions()

    assert engine.start("versioned").definition_version == 2
    assert engine.start("versioned", version=1).definition_version == 1


def define_versions() -> None:
    """Version 1 is replaced by version 2 in the middle of a deploy."""
    for number in (1, 2):

        class Versioned(Workflow):
            name = "versioned"
            version = number
            __qualname__ = f"Versioned{number}"

            @step
            def only(self, ctx: Context) -> None: ...


def test_another_version_under_the_same_key_is_an_error_only_for_a_caller_who_named_the_version() -> None:
    define_versions()
    old = engine.start("versioned", version=1, idempotency_key="k")

    assert engine.start("versioned", idempotency_key="k") == old
    with pytest.raises(IdempotencyConflictError) as raised:
        engine.start("versioned", version=2, idempotency_key="k")
    assert str(raised.value) == (
        f"The idempotency key 'k' already belongs to workflow instance {old.pk}, with version 1 of its workflow."
        " Use the same values to get that instance, or another key for another one."
    )


def test_a_name_that_nobody_registered_is_an_error_that_knows_what_was_meant() -> None:
    with pytest.raises(UnknownWorkflowError) as raised:
        engine.start("one_stop")

    assert str(raised.value) == (
        "No workflow 'one_stop' is registered. Did you mean 'one_step'?"
        " Workflows are found in the 'workflows' module of installed apps."
    )


def test_a_version_that_nobody_registered_is_an_error_that_names_the_nearest_there_is() -> None:
    with pytest.raises(UnknownWorkflowError) as raised:
        engine.start("one_step", version=7)

    assert str(raised.value) == (
        "No workflow 'one_step' version 7 is registered. Did you mean 'one_step version 1'?"
        " Workflows are found in the 'workflows' module of installed apps."
    )


def test_the_subject_is_stored_as_a_pair_and_fetched_for_the_step() -> None:
    seen = []

    class About(Workflow):
        name = "about"

        @step
        def look(self, ctx: Context) -> None:
            seen.append((ctx.subject, ctx.subject_ref, ctx.tenant))

    counter = Counter.objects.create(name="it")
    instance = engine.start(About, subject=counter, tenant="acme")
    settled(instance)

    assert (instance.subject_type, instance.subject_id) == ("test_shop.counter", str(counter.pk))
    assert seen == [(counter, ("test_shop.counter", str(counter.pk)), "acme")]
    assert list(WorkflowInstance.objects.for_subject(counter)) == [instance]
    assert list(WorkflowInstance.objects.for_subject(("test_shop.counter", counter.pk))) == [instance]


def test_a_subject_that_is_not_saved_is_refused() -> None:
    with pytest.raises(ValueError, match="primary key") as raised:
        engine.start(OneStep, subject=Counter(name="new"))

    assert str(raised.value) == "The subject Counter has no primary key yet. Save it before you use it."


def test_a_subject_that_is_neither_a_row_nor_a_pair_is_refused() -> None:
    with pytest.raises(TypeError) as raised:
        engine.start(OneStep, subject="shop.order")  # type: ignore[arg-type]

    assert str(raised.value) == "subject must be a saved model instance or a pair like ('shop.order', 42), not str."


def test_a_step_without_a_subject_gets_none() -> None:
    seen = []

    class About(Workflow):
        name = "about"

        @step
        def look(self, ctx: Context) -> None:
            seen.append((ctx.subject, ctx.subject_ref))

    settled(engine.start(About))

    assert seen == [(None, None)]


def test_a_subject_that_was_deleted_fails_the_step_that_wants_it() -> None:
    class About(Workflow):
        name = "about"

        @step
        def look(self, ctx: Context) -> None:
            assert ctx.subject

    counter = Counter.objects.create(name="it")
    instance = engine.start(About, subject=counter)
    counter.delete()
    instance = settled(instance)

    assert instance.error is not None
    assert instance.error["type"] == "SubjectMissingError"
    assert instance.error["message"] == (
        f"The subject test_shop.counter:{instance.subject_id} does not exist (any more). Check `ctx.subject_ref`,"
        " or keep the row while its workflow is live."
    )


def test_the_actor_may_be_a_user() -> None:
    user = get_user_model()(username="zoë")

    (event,) = events(engine.start(OneStep, actor=user))

    assert event.actor == "zoë"


def test_a_stored_instance_is_changed_by_the_engine_alone() -> None:
    instance = WorkflowInstance.objects.get(pk=engine.start(OneStep).pk)

    with pytest.raises(TypeError) as raised:
        instance.save()

    assert str(raised.value) == (
        "Workflow instances are changed by the engine alone: use engine.signal(), cancel(), retry() …"
    )
