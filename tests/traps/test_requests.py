"""The verbs in a view whose request is one transaction (ATOMIC_REQUESTS)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from pytest_django.fixtures import Settings

from tests.shop.models import Counter
from tests.support import kinds, mailbox
from tests.traps.background import PATIENCE, connection_settings, in_thread
from workflow_engine import Await, Context, IdempotencyConflictError, Workflow, engine, signals, step
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload

pytestmark = pytest.mark.django_db(transaction=True)


def place(request: HttpRequest) -> HttpResponse:
    """Start one, send it a signal, and answer with what others see of it so far."""
    instance = engine.start("ordering", idempotency_key=request.GET["order"])
    engine.signal(instance, "paid")
    Counter.objects.create(name=request.GET["order"])
    seen = in_thread(WorkflowInstance.objects.count).result(PATIENCE) if "look" in request.GET else 0
    if "fail" in request.GET:
        raise ValueError("after all")
    return HttpResponse(f"{instance.pk} {seen}")


def place_twice(request: HttpRequest) -> HttpResponse:
    """The second start conflicts with the first; the view goes on."""
    engine.start("ordering", context={"amount": 1}, idempotency_key="order-1")
    try:
        engine.start("ordering", context={"amount": 2}, idempotency_key="order-1")
    except IdempotencyConflictError as conflict:
        Counter.objects.create(name="conflict noted")
        return HttpResponse(conflict.instance.context["amount"])
    return HttpResponse("no conflict")


def advance(request: HttpRequest, instance: str) -> HttpResponse:
    """What a view may not do in its transaction."""
    return HttpResponse(engine.advance(instance).answer)


@transaction.non_atomic_requests
def advance_outside(request: HttpRequest, instance: str) -> HttpResponse:
    """What it may do without one."""
    return advance(request, instance)


urlpatterns = [
    path("place", place),
    path("place-twice", place_twice),
    path("advance/<instance>", advance),
    path("advance-outside/<instance>", advance_outside),
]


@pytest.fixture(autouse=True)
def atomic_requests(settings: Settings) -> Iterator[None]:
    settings.ROOT_URLCONF = __name__

    class Placed(Workflow):
        name = "ordering"

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("paid")

    with connection_settings(ATOMIC_REQUESTS=True):
        yield


@pytest.fixture
def sent() -> Iterator[list[Any]]:
    """The instances whose start receivers were told of."""
    told: list[Any] = []

    def receive(instance_id: Any, **_: Any) -> None:
        assert in_thread(WorkflowInstance.objects.filter(pk=instance_id).exists).result(PATIENCE)
        told.append(instance_id)

    signals.workflow_started.connect(receive)
    yield told
    signals.workflow_started.disconnect(receive)


def test_a_request_that_succeeds_commits_its_start_and_its_signal_and_then_sends(sent: list[Any]) -> None:
    answer = Client().get("/place?order=a")
    (instance,) = WorkflowInstance.objects.all()
    assert answer.content.decode() == f"{instance.pk} 0"
    assert sent == [instance.pk]
    assert mailbox(instance) == [("paid", "pending")]
    engine.drive(instance)
    assert reload(instance).status == "completed"


def test_nobody_else_sees_it_before_the_request_is_over() -> None:
    assert Client().get("/place?order=a&look").content.decode().endswith(" 0")
    assert WorkflowInstance.objects.count() == 1


def test_a_request_that_fails_leaves_nothing_and_sends_nothing(sent: list[Any]) -> None:
    assert Client(raise_request_exception=False).get("/place?order=a&fail").status_code == 500
    assert sent == []
    assert not WorkflowInstance.objects.exists()
    assert not Counter.objects.exists()
    assert Client().get("/place?order=a").status_code == 200  # its key is free again


def test_a_conflict_of_keys_leaves_the_requests_transaction_usable() -> None:
    assert Client().get("/place-twice").content.decode() == "1"
    (instance,) = WorkflowInstance.objects.all()
    assert kinds(instance) == ["workflow_started"]
    assert Counter.objects.get().name == "conflict noted"


def test_an_advance_inside_the_requests_transaction_is_refused_and_outside_it_works() -> None:
    instance = engine.start("ordering")
    with pytest.raises(RuntimeError, match="durable atomic block cannot be nested"):
        Client().get(f"/advance/{instance.pk}")
    assert kinds(instance) == ["workflow_started"]
    assert Client().get(f"/advance-outside/{instance.pk}").content.decode() == Answer.ADVANCED
