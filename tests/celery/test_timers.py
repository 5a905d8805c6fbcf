"""How late timers are, told by the mechanism alone: no machine's speed is in it, for time passes only when told to."""

from __future__ import annotations

import heapq
import random
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from tests.celery import recording
from tests.celery.recording import Sent
from workflow_engine import Complete, Context, Outcome, Sleep, Workflow, clock, conf, engine, step, tick
from workflow_engine.engine.driving import drive
from workflow_engine.models import WorkflowEvent

TIMERS = 60
BETWEEN = timedelta(seconds=30)


class Broker:
    """Delivers what was sent when its delay is over, and lets a tick run every TICK_INTERVAL in between."""

    def __init__(self, sent: list[Sent]) -> None:
        self._sent, self._numbers = sent, count()
        self._waiting: list[tuple[datetime, int, UUID]] = []
        self._interval = conf.current().duration("TICK_INTERVAL")
        self._next_tick = clock.now("default") + self._interval

    def run_until(self, end: datetime) -> None:
        while True:
            self._take_up()
            moment = min([self._next_tick, *(delivery[0] for delivery in self._waiting[:1])])
            if moment > end:
                return
            clock.shift(max(moment - clock.now("default"), timedelta()))
            if moment == self._next_tick:
                tick.tick("default")
                self._next_tick += self._interval
            else:
                drive(heapq.heappop(self._waiting)[2], "default", queue="")

    def _take_up(self) -> None:
        now = clock.now("default")
        for message in self._sent:
            assert message.delay <= self._interval
            heapq.heappush(self._waiting, (now + message.delay, next(self._numbers), message.instance_id))
        self._sent.clear()


def test_timers_are_never_early_and_wait_for_no_tick(sent: list[Sent]) -> None:
    class Timer(Workflow):
        name = "timer"

        @step
        def start(self, ctx: Context) -> Outcome:
            return Sleep(ctx.input["seconds"])

        @step
        def wake(self, ctx: Context) -> Outcome:
            return Complete()

    spread = random.Random(20)  # noqa: S311 - no secret
    broker = Broker(sent)
    start = clock.now("default")
    for _ in range(TIMERS):
        # From the near, which no tick sees beforehand, to the far, which only a tick sees.
        engine.start(Timer, context={"seconds": round(spread.uniform(0.5, BETWEEN.total_seconds()), 3)})
        broker.run_until(clock.now("default"))
    broker.run_until(start + 2 * BETWEEN)
    lateness = sorted(_lateness())
    assert len(lateness) == TIMERS
    assert lateness[0] >= timedelta()
    assert lateness[-1] < timedelta(seconds=1)


def _lateness() -> list[timedelta]:
    slept = WorkflowEvent.objects.filter(kind="workflow_slept")
    due = {event.instance_id: datetime.fromisoformat(event.data["set"]["due_at"]) for event in slept}
    woken = WorkflowEvent.objects.filter(kind="step_completed", step="start")
    return [event.created_at - due[event.instance_id] for event in woken]


@pytest.mark.parametrize("interval", [5, 20])
def test_no_message_waits_for_longer_than_an_interval(interval: int, sent: list[Sent], settings: Settings) -> None:
    class Dozer(Workflow):
        name = "dozer"

        @step
        def doze(self, ctx: Context) -> Outcome:
            return Sleep(ctx.input["seconds"])

    settings.WORKFLOW_ENGINE = {"DISPATCHER": recording.PATH, "TICK_INTERVAL": interval}
    for seconds in range(1, 61, 6):
        drive(engine.start(Dozer, context={"seconds": seconds}).pk, "default")
    for _ in range(60 // interval):
        tick.tick("default")
        clock.shift(timedelta(seconds=interval))
    assert max(message.seconds for message in sent) <= interval
