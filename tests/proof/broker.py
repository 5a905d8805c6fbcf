"""A broker in a list: what is handed out waits here, is lost with the process, and may be delivered twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from tests.proof import ledger
from workflow_engine.dispatch import Dispatcher

PATH = "tests.proof.broker.ListDispatcher"

jobs: list[UUID] = []
"""What was handed out and not taken yet."""
refusing: set[str] = set()
"""Queues that take nothing."""


class ListDispatcher(Dispatcher):
    """Pushes into `jobs`, unless the queue is among the `refusing`."""

    pushes: ClassVar[bool] = True

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Note the job, and that it was handed out."""
        ledger.write("handed", instance=str(instance_id), queue=queue)
        if queue in refusing:
            raise ConnectionError("this queue takes nothing")
        jobs.append(instance_id)


def deliveries() -> Iterator[UUID]:
    """Take everything out, the oldest first; what is put in meanwhile too."""
    while jobs:
        yield jobs.pop(0)
