from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.shop.workflows import OneStep, WaitForGo
from tests.support import ONCE, TWICE, later, settled
from workflow_engine import Context, Fail, Outcome, RetryPolicy, Workflow, activity, engine, step

Line = tuple[str, str]


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, logger="workflow_engine"):
        yield


def lines(caplog: pytest.LogCaptureFixture) -> list[Line]:
    """Level and text of what was logged by the engine."""
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "workflow_engine"]


def failing(error: Exception, *, retry: RetryPolicy = TWICE) -> type[Workflow[Any]]:
    class Fails(Workflow):
        name = "fails"

        @step(retry=retry)
        def work(self, ctx: Context) -> None:
            raise error

    return Fails


@pytest.mark.django_db(transaction=True)
def test_every_event_is_a_line_with_ids_in_extra(caplog: pytest.LogCaptureFixture) -> None:
    instance = settled(engine.start(OneStep))

    start = f"one_step {instance.pk}:"
    assert lines(caplog) == [
        ("INFO", f"{start} workflow_started"),
        ("INFO", f"{start} step_completed of step only (visit 1)"),
        ("INFO", f"{start} workflow_completed of step only (visit 1)"),
    ]
    record = next(record for record in caplog.records if "step_completed" in record.getMessage())
    extra = {name: value for name, value in vars(record).items() if name.startswith("workflow_")}
    assert extra == {
        "workflow_name": "one_step",
        "workflow_instance_id": str(instance.pk),
        "workflow_event": "step_completed",
        "workflow_step": "only",
        "workflow_attempt": 1,
    }


def test_what_is_tried_again_is_a_warning_and_what_is_final_an_error_both_with_the_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ValueError("down")
    instance = settled(engine.start(failing(error)))
    later(instance, seconds=11)

    failures = [record for record in caplog.records if "step_failed" in record.getMessage()]
    assert [record.levelname for record in failures] == ["WARNING", "ERROR"]
    assert [record.exc_info and record.exc_info[1] for record in failures] == [error, error]
    assert failures[0].getMessage() == f"fails {instance.pk}: step_failed of step work (visit 1): ValueError: down"
    (ended,) = [record for record in caplog.records if "workflow_failed" in record.getMessage()]
    assert (ended.levelname, ended.exc_info) == ("ERROR", None)


def test_a_message_with_line_breaks_stays_one_line(caplog: pytest.LogCaptureFixture) -> None:
    instance = settled(engine.start(failing(ValueError("a\nERROR forged\r\x1b[31mé"), retry=ONCE)))

    assert (
        "ERROR",
        f"fails {instance.pk}: step_failed of step work (visit 1): ValueError: a\\nERROR forged\\r\\x1b[31m\\xe9",
    ) in lines(caplog)
    assert all(message.isprintable() for _, message in lines(caplog))


def test_the_reason_of_a_request_stays_one_line_too(caplog: pytest.LogCaptureFixture) -> None:
    instance = settled(engine.start(WaitForGo))
    engine.cancel(instance, reason="one\ntwo")
    settled(instance)

    assert ("INFO", f"wait_for_go {instance.pk}: workflow_cancelled of step wait (visit 1): one\\ntwo") in lines(caplog)


def test_a_denied_request_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    instance = settled(engine.start(WaitForGo))
    for _ in range(2):
        engine.pause(instance)
    settled(instance)

    assert (
        "WARNING",
        f"wait_for_go {instance.pk}: request_denied of step wait (visit 1): It is paused already.",
    ) in lines(caplog)


def test_an_undo_that_fails_is_a_warning_and_one_that_is_given_up_an_error(caplog: pytest.LogCaptureFixture) -> None:
    class Undoes(Workflow):
        name = "undoes"

        @activity
        def book(self, ctx: Context) -> None: ...

        @book.compensation(retry=TWICE)
        def cancel(self, ctx: Context, result: Any) -> None:
            raise OSError("closed")

        @step
        def fail(self, ctx: Context) -> Outcome:
            return Fail("no")

    instance = settled(engine.start(Undoes))
    later(instance, seconds=11)

    levels = {text.split()[2]: level for level, text in lines(caplog) if "closed" in text}
    assert levels == {
        "compensation_attempt_failed": "WARNING",
        "compensation_failed": "ERROR",
        "workflow_failed": "ERROR",
    }


def test_the_context_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Secret(Workflow):
        name = "secret"

        @step(retry=ONCE)
        def one(self, ctx: Context) -> dict[str, Any]:
            return {"card": "4111-1111"}

        @step(retry=ONCE)
        def two(self, ctx: Context) -> None:
            raise ValueError("no")

    settled(engine.start(Secret, context={"iban": "DE89-3704"}))

    written = " ".join(f"{vars(record)}" for record in caplog.records)
    assert "4111-1111" not in written
    assert "DE89-3704" not in written
