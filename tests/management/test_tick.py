from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import pytest

from tests.management.calling import refused, say
from workflow_engine import clock, engine
from workflow_engine.dispatch import Dispatcher
from workflow_engine.models import WorkflowInstance

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db(transaction=True)


class Pushing(Dispatcher):
    """Remembers what it was handed."""

    pushes: ClassVar[bool] = True
    handed: ClassVar[list[UUID]] = []
    ends_the_loop: ClassVar[bool] = False

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        self.handed.append(instance_id)
        if self.ends_the_loop:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def due(settings: Settings) -> WorkflowInstance:
    row = engine.start("leave")
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "tests.management.test_tick.Pushing", "TICK_INTERVAL": 0.1}
    Pushing.handed.clear()
    return row


def test_what_is_due_is_handed_out(due: WorkflowInstance) -> None:
    assert say("workflow_tick").lines == ["Handed out 1, woken 0, not handed out 0."]
    assert Pushing.handed == [due.pk]
    assert say("workflow_tick", "--json").json == {"handed_out": 0, "woken": 0, "failed": 0}


def test_the_loop_ticks_until_it_is_told_to_end(due: WorkflowInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pushing, "ends_the_loop", True)
    said = say("workflow_tick", "--loop")
    assert said.lines == ["Handed out 1, woken 0, not handed out 0."]
    assert Pushing.handed == [due.pk]


def test_a_tick_that_took_an_interval_is_followed_by_the_next_at_once(
    due: WorkflowInstance, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What becomes due between two ticks was looked for by the first: a pause after it would make that late."""
    settings.WORKFLOW_ENGINE = {**settings.WORKFLOW_ENGINE, "TICK_INTERVAL": 50, "GRACE": 40}

    def take_long(dispatcher: Pushing, instance_id: UUID, **_: Any) -> None:
        dispatcher.handed.append(instance_id)
        clock.shift(timedelta(seconds=50))
        if len(dispatcher.handed) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Pushing, "dispatch", take_long)
    started = time.monotonic()
    say("workflow_tick", "--loop")
    clock.reset_shift()
    assert Pushing.handed == [due.pk, due.pk]
    assert time.monotonic() - started < 45


def test_a_dispatcher_that_hands_nothing_out_needs_no_tick() -> None:
    text = (
        "The dispatcher 'database' hands nothing out, so there is nothing to tick: workflow_worker finds what is due by"
        " itself."
    )
    said = say("workflow_tick")
    assert (said.out, said.err) == ("", f"{text}\n")
    assert refused("workflow_tick", "--loop") == text
