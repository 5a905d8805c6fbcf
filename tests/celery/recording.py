"""A broker that is a list: a test reads what was sent, and delivers it when it likes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from workflow_engine.dispatch import Dispatcher
from workflow_engine.exceptions import BrokerUnavailableError

PATH = "tests.celery.recording.RecordingDispatcher"
AWAY = "away"
"""The queue that stands for a broker that is away."""
UNKNOWN = "unknown"
"""The queue that no message can be sent to."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message."""

    instance_id: UUID
    queue: str
    delay: timedelta

    @property
    def seconds(self) -> float:
        """Its delay."""
        return self.delay.total_seconds()


sent: list[Sent] = []


class RecordingDispatcher(Dispatcher):
    """Pushes into `sent`."""

    pushes: ClassVar[bool] = True

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Note the message, unless its queue stands for trouble."""
        if queue == AWAY:
            raise BrokerUnavailableError(TimeoutError("no answer within 2 s"))
        if queue == UNKNOWN:
            raise KeyError(queue)
        sent.append(Sent(instance_id, queue, delay))
