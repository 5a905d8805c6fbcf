"""What users get wrong, each with the whole message that they read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from tests.shop.models import Counter, Effect
from tests.shop.workflows import OneStep, WaitForGo, leave_effect
from tests.support import error_of, kinds, mailbox, settled
from workflow_engine import (
    Await,
    Complete,
    Context,
    Finish,
    Goto,
    NotSerializableError,
    Sleep,
    Workflow,
    engine,
    step,
)
from workflow_engine.models import WorkflowInstance

NESTED: list[Any] = []
for _ in range(40):
    NESTED = [NESTED]

UNSTORABLE = [
    pytest.param(
        {"price": {"net": float("nan")}},
        "at price.net: nan is not a JSON number; store None or a string",
        id="NaN",
    ),
    pytest.param(
        {"n": [1, float("-inf")]}, "at n[1]: -inf is not a JSON number; store None or a string", id="infinity"
    ),
    pytest.param(
        {"name": "a\x00b"}, "at name: contains NUL (\\x00), which PostgreSQL can't store; remove it", id="NUL"
    ),
    pytest.param(
        {"name": "a\ud800"},
        "at name: contains a lone surrogate, which is not Unicode text; decode with errors='replace'",
        id="surrogate",
    ),
    pytest.param({"tags": {1, 2}}, "at tags: a set has no order; store sorted(...) of it", id="set"),
    pytest.param({"pdf": b"%PDF"}, "at pdf: bytes are not text; store base64 or a file's name", id="bytes"),
    pytest.param({7: "seven"}, ": the key 7 is int, not str; write it as a string", id="key"),
    pytest.param({"a": {None: 1}}, "at a: the key None is NoneType, not str; write it as a string", id="nested key"),
    pytest.param({"n": 2**63}, "at n: an integer over 64 bits loses digits in MySQL; store a string", id="integer"),
    pytest.param({"o": object()}, "at o: a object is not JSON; store its primary key or fields", id="object"),
    pytest.param(
        {"deep": NESTED},
        "at deep[0][0]…: nested deeper than 30 levels, which MariaDB can't store; flatten it",
        id="depth",
    ),
    pytest.param(
        {"x": "é" * 150 * 1024},
        ": 307,208 bytes of JSON, more than the 262,144 of WORKFLOW_ENGINE['MAX_PAYLOAD_BYTES'];"
        " store it in a table or file and pass its key",
        id="300 KiB",
    ),
]


def told(what: str, problem: str) -> str:
    return what + ("" if problem.startswith(":") else " ") + problem


@pytest.mark.parametrize(("value", "problem"), UNSTORABLE)
def test_a_context_that_can_not_be_stored_is_refused_and_nothing_starts(value: Any, problem: str) -> None:
    with pytest.raises(NotSerializableError) as raised:
        engine.start(OneStep, context=value)

    assert str(raised.value) == told("context", problem)
    assert not WorkflowInstance.objects.exists()


@pytest.mark.parametrize(("value", "problem"), UNSTORABLE)
def test_signal_data_that_can_not_be_stored_is_refused_and_nothing_is_sent(value: Any, problem: str) -> None:
    instance = engine.start(WaitForGo)

    with pytest.raises(NotSerializableError) as raised:
        engine.signal(instance, "go", value)

    assert str(raised.value) == told("signal data", problem)
    assert mailbox(instance) == []


def returning(value: Any) -> type[Workflow[Any]]:
    """A workflow whose only step writes a row and returns the value; or what it returns, if that is a function."""

    class Returns(Workflow):
        name = "returns"

        @step
        def work(self, ctx: Context) -> Any:
            leave_effect(ctx)
            return value() if callable(value) else value

        @step
        def after(self, ctx: Context) -> None: ...

    return Returns


OUTCOMES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda value: value, "updates"),
    (lambda value: Complete(result=value), "result"),
    (lambda value: Finish(updates=value), "updates"),
    (Finish, "result"),
    (lambda value: Await("go", updates=value), "updates"),
    (lambda value: Sleep(5, updates=value), "updates"),
    (lambda value: Goto("after", updates=value), "updates"),
]


@pytest.mark.parametrize(("value", "problem"), UNSTORABLE)
@pytest.mark.parametrize(("outcome", "what"), OUTCOMES)
def test_what_a_step_returns_and_can_not_be_stored_is_a_final_failure_and_its_writes_are_gone(
    outcome: Callable[[Any], Any], what: str, value: Any, problem: str
) -> None:
    instance = settled(engine.start(returning(outcome(value))))

    assert (instance.status, error_of(instance)) == ("failed", ("NotSerializableError", told(what, problem)))
    assert kinds(instance) == ["workflow_started", "step_failed", "workflow_failed"]
    assert not Effect.objects.exists()


def test_a_context_that_grows_over_the_limit_is_a_final_failure() -> None:
    instance = engine.start(returning({"more": "x" * 200_000}), context={"some": "x" * 100_000})

    assert error_of(settled(instance)) == (
        "NotSerializableError",
        (
            "context: 300,021 bytes of JSON, more than the 262,144 of WORKFLOW_ENGINE['MAX_PAYLOAD_BYTES'];"
            " store it in a table or file and pass its key"
        ),
    )


@override_settings(WORKFLOW_ENGINE={"MAX_PAYLOAD_BYTES": 400_000})
def test_the_limit_is_a_setting() -> None:
    instance = engine.start(returning({"more": "x" * 200_000}), context={"some": "x" * 100_000})

    assert settled(instance).status == "completed"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "3 (int)"),
        (True, "True (bool)"),
        ("done", "a str"),
        (["a"], "a list"),
        (lambda: iter(()), "a tuple_iterator"),
    ],
)
def test_a_return_value_that_is_no_outcome_is_a_failure_that_lists_every_accepted_form(value: Any, told: str) -> None:
    instance = settled(engine.start(returning(value)))

    assert instance.status == "failed"
    assert error_of(instance) == (
        "UnknownOutcomeError",
        (
            f"The handler returned {told}, which is not an outcome. Return None or a dict (completes the step, merging"
            " the dict into the context), or one of Complete, Await, Sleep, Goto, Finish, Retry, Fail."
        ),
    )


def test_a_handler_that_returns_a_queryset_fails_without_executing_it() -> None:
    Counter.objects.create(name="one")
    with CaptureQueriesContext(connection) as queries:
        bare = settled(engine.start(returning(lambda: Counter.objects.order_by("value"))))
        kept = settled(engine.start(returning(lambda: {"rows": Counter.objects.order_by("value")})))
        result = settled(engine.start(returning(lambda: Complete(result=Counter.objects.order_by("value")))))

    assert len(queries) > 3
    assert not [query["sql"] for query in queries if 'ORDER BY "test_shop_counter"."value"' in query["sql"]]
    assert error_of(bare)[1].startswith("The handler returned a QuerySet, which is not an outcome.")
    assert error_of(kept) == (
        "NotSerializableError",
        "updates at rows: a QuerySet is a query, not its rows; store a list of primary keys",
    )
    assert error_of(result)[1] == "result: a QuerySet is a query, not its rows; store a list of primary keys"


NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 - the mistake


@pytest.mark.parametrize(
    ("outcome", "what"), [(lambda: Sleep(NAIVE), "Sleep(…)"), (lambda: Await("go", timeout=NAIVE), "Await(timeout=…)")]
)
def test_a_naive_datetime_names_no_moment(outcome: Callable[[], Any], what: str) -> None:
    instance = settled(engine.start(returning(outcome)))

    assert (instance.status, error_of(instance)) == (
        "failed",
        (
            "InvalidOutcomeError",
            (
                f"{what} is a naive datetime, which names no moment. Make it aware, with"
                " django.utils.timezone.make_aware(…), or give a duration."
            ),
        ),
    )


@pytest.mark.parametrize("outcome", [Sleep, lambda moment: Await("go", timeout=moment)])
def test_a_moment_that_has_no_name_in_utc_is_a_failure_of_the_step(outcome: Callable[[Any], Any]) -> None:
    last = datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))
    instance = settled(engine.start(returning(lambda: outcome(last))))

    assert instance.status == "failed"
    kind, message = error_of(instance)
    assert kind == "InvalidOutcomeError"
    assert message.endswith(
        " is 9999-12-31 23:59:59.999999-05:00, which no database can store. Give an earlier moment."
    )


def test_the_last_moment_there_is_can_be_slept_until() -> None:
    instance = settled(engine.start(returning(lambda: Sleep(datetime.max.replace(tzinfo=UTC)))))

    assert (instance.status, instance.due_at) == ("sleeping", datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize("name", ["a\x00b", "a\ud800"])
def test_an_awaited_name_that_no_signal_can_have_is_a_failure(name: str) -> None:
    instance = settled(engine.start(returning(lambda: Await(name))))

    assert (instance.status, error_of(instance)[0]) == ("failed", "NotSerializableError")
