from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from django.db import transaction

pytest.importorskip("celery", reason="needs Celery: pip install -e '.[services]'")

from tests.celery.brokers import MEMORY, app_at, end_publisher, messages, publishers_end
from tests.shop.models import Counter
from tests.traps.background import in_thread
from workflow_engine import Context, Workflow, dispatch, engine, step
from workflow_engine.dispatchers import celery as dispatching
from workflow_engine.dispatchers.celery import CeleryDispatcher
from workflow_engine.engine.driving import drive
from workflow_engine.exceptions import BrokerUnavailableError, DispatchError
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload

if TYPE_CHECKING:
    from celery import Celery
    from pytest_django.fixtures import Settings

ID = UUID("00000000-0000-7000-8000-000000000001")
BOUND = 3.0
"""Seconds: the two that a caller waits, and what a busy machine adds."""


@pytest.fixture
def dispatcher(settings: Settings) -> Iterator[CeleryDispatcher]:
    """The engine's own, fresh."""
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "celery"}
    dispatch._load.cache_clear()
    made = dispatch.dispatcher()
    assert isinstance(made, CeleryDispatcher)
    yield made
    dispatch._load.cache_clear()
    end_publisher(made)
    publishers_end()


@pytest.fixture
def app(dispatcher: CeleryDispatcher) -> Iterator[Celery]:
    with app_at(MEMORY) as made:
        messages(made)
        yield made


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@pytest.fixture
def trio() -> type[Workflow]:
    class Trio(Workflow):
        name = "trio"

        @step
        def one(self, ctx: Context) -> None: ...

        @step
        def two(self, ctx: Context) -> None: ...

        @step
        def three(self, ctx: Context) -> None: ...

    return Trio


def send(dispatcher: CeleryDispatcher, queue: str = "", seconds: float = 0) -> None:
    dispatcher.dispatch(ID, queue=queue, using="default", delay=timedelta(seconds=seconds))


def refusal(dispatcher: CeleryDispatcher) -> tuple[str, float]:
    """What it says, and after how many seconds."""
    started = time.monotonic()
    with pytest.raises(BrokerUnavailableError) as caught:
        send(dispatcher)
    return str(caught.value), time.monotonic() - started


def told(reason: str) -> str:
    return f"The broker did not take the message ({reason}). Is it running, and is the URL right?"


def test_a_message_carries_the_id_under_the_name_of_the_task(dispatcher: CeleryDispatcher, app: Celery) -> None:
    send(dispatcher)
    (message,) = messages(app)
    assert message.task == "workflow_engine.advance"
    assert (message.args, message.kwargs) == ([str(ID)], {"using": "default", "queue": ""})
    assert message.eta is None


def test_a_message_goes_to_its_queue_and_comes_after_its_delay(dispatcher: CeleryDispatcher, app: Celery) -> None:
    send(dispatcher, queue="printers", seconds=5)
    (message,) = messages(app, "printers")
    assert message.kwargs == {"using": "default", "queue": "printers"}
    assert message.eta is not None
    assert (message.eta - datetime.now(UTC)).total_seconds() == pytest.approx(5, abs=1)
    assert messages(app) == []


def test_routes_of_the_project_hold_for_what_asks_for_no_queue(dispatcher: CeleryDispatcher, app: Celery) -> None:
    app.conf.task_routes = {"workflow_engine.*": {"queue": "workflows"}}
    send(dispatcher)
    send(dispatcher, queue="printers")
    assert len(messages(app, "workflows")) == 1
    assert len(messages(app, "printers")) == 1


def test_a_burst_of_steps_takes_one_message(trio: type[Workflow], app: Celery) -> None:
    instance = engine.start(trio)
    drive(instance.pk, "default", queue="")
    assert reload(instance).status == "completed"
    assert [message.args for message in messages(app)] == [[str(instance.pk)]]


def test_a_message_leaves_after_the_commit_and_never_without_it(trio: type[Workflow], app: Celery) -> None:
    with transaction.atomic():
        engine.start(trio)
        assert messages(app) == []
    assert len(messages(app)) == 1
    with transaction.atomic():
        engine.start(trio)
        transaction.set_rollback(True)
    assert messages(app) == []


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_never_answers_holds_its_caller_for_two_seconds_once(
    scheme: str, silent: int, dispatcher: CeleryDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app_at(f"{scheme}://127.0.0.1:{silent}/0"):
        reason, seconds = refusal(dispatcher)
        assert reason == told("no answer within 2 s")
        assert seconds < BOUND
        reason, seconds = refusal(dispatcher)
        assert reason == told("not tried: it failed a moment ago")
        assert seconds < 0.1
        # Whatever hangs comes back by itself, without any setting of the project's.
        publishers_end()
        monkeypatch.setattr(dispatching, "PAUSE_AFTER_FAILURE", 0)
        dispatcher._broker._closed_until = time.monotonic()
        assert refusal(dispatcher)[0] == told("no answer within 2 s")


def test_many_callers_at_once_wait_no_longer_than_one(silent: int, dispatcher: CeleryDispatcher) -> None:
    with app_at(f"redis://127.0.0.1:{silent}/0") as app:

        def call() -> tuple[str, float]:
            app.set_current()
            return refusal(dispatcher)

        seconds = [calling.result(30)[1] for calling in [in_thread(call) for _ in range(12)]]
    assert max(seconds) < BOUND


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_refuses_is_given_up_at_once(scheme: str, silent: int, dispatcher: CeleryDispatcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with app_at(f"{scheme}://127.0.0.1:{port}/0"):
        reason, seconds = refusal(dispatcher)
    assert "refused" in reason
    assert seconds < 1


def test_a_request_goes_through_while_the_broker_is_away(
    trio: type[Workflow], silent: int, dispatcher: CeleryDispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    with app_at(f"redis://127.0.0.1:{silent}/0"):
        started = time.monotonic()
        first, second = engine.start(trio), engine.start(trio)
        assert time.monotonic() - started < BOUND
    assert WorkflowInstance.objects.filter(status="pending", pk__in=[first.pk, second.pk]).count() == 2
    warnings = [(record.message, record.exc_info) for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        (f"Workflow instance {first.pk} is handed out again later: {told('no answer within 2 s')}", None),
        (f"Workflow instance {second.pk} is handed out again later: {told('not tried: it failed a moment ago')}", None),
    ]


def test_after_the_pause_the_broker_is_tried_again(
    app: Celery, dispatcher: CeleryDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "PAUSE_AFTER_FAILURE", 0.3)
    dispatcher._broker._closed_until = time.monotonic() + 0.3
    assert refusal(dispatcher)[0] == told("not tried: it failed a moment ago")
    time.sleep(0.4)
    send(dispatcher)
    send(dispatcher)
    assert len(messages(app)) == 2


def test_a_message_that_cannot_be_sent_closes_the_way_for_no_other(app: Celery, dispatcher: CeleryDispatcher) -> None:
    app.conf.task_create_missing_queues = False
    with pytest.raises(DispatchError) as caught:
        send(dispatcher, queue="unheard of")
    assert str(caught.value) == "The message could not be sent: \"Queue 'unheard of' missing from task_queues\"."
    assert not isinstance(caught.value, BrokerUnavailableError)
    send(dispatcher)
    assert len(messages(app)) == 1


def test_eager_mode_drives_in_this_process_one_after_the_other(app: Celery, dispatcher: CeleryDispatcher) -> None:
    app.conf.task_always_eager = True

    class Countdown(Workflow):
        name = "countdown"

        @step
        def count(self, ctx: Context) -> None:
            Counter.objects.create(name=f"left {ctx.input['left']}", value=len(depth()))
            if ctx.input["left"]:
                engine.start(Countdown, context={"left": ctx.input["left"] - 1})

    engine.start(Countdown, context={"left": 30})
    values = list(Counter.objects.order_by("pk").values_list("value", flat=True))
    assert len(values) == 31
    # Recursion would grow with every start.
    assert values[-1] == values[1]
    assert messages(app) == []


def depth() -> list[object]:
    import inspect

    return list(inspect.stack(0))


def test_eager_mode_leaves_to_tick_what_is_not_due_yet(
    app: Celery, dispatcher: CeleryDispatcher, trio: type[Workflow]
) -> None:
    instance = engine.start(trio)
    app.conf.task_always_eager = True
    dispatcher.dispatch(instance.pk, queue="", using="default", delay=timedelta(seconds=5))
    assert reload(instance).status == "pending"
