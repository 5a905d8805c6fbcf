"""Celery: a message with the instance's id, sent by task name after commit. The tables stay the truth.

A publish is best effort: it is bounded in time, never repeated here, and after a failure not even tried for a while.
What was not sent, or got lost, is handed out again by tick.
"""

from __future__ import annotations

import queue as queues
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

from celery import current_app

from workflow_engine.dispatch import Dispatcher
from workflow_engine.dispatchers.inline import InlineDispatcher
from workflow_engine.exceptions import DispatchError

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

ADVANCE = "workflow_engine.advance"
PUBLISH_TIMEOUT = 2.0
"""Seconds a caller waits for the broker. A frozen Redis would hold it for minutes: its sockets have no timeout."""
PAUSE_AFTER_FAILURE = 10.0
"""Seconds without a try after a failure, so that a broker that is down slows down no request but one."""


class CeleryDispatcher(Dispatcher):
    """Sends `workflow_engine.advance` to the queue of the workflow. With task_always_eager it drives in line."""

    pushes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._eager = InlineDispatcher()
        self._silent_until = 0.0

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Publish within PUBLISH_TIMEOUT, or not at all.

        Raises:
            DispatchError: the broker did not take it in time, or a moment ago did not take another one.
        """
        if current_app.conf.task_always_eager:
            self._eager.dispatch(instance_id, queue=queue, using=using, delay=delay)
            return
        if time.monotonic() < self._silent_until:
            raise DispatchError(TimeoutError("not tried: it did not take one a moment ago"))
        message: dict[str, Any] = {"args": [str(instance_id)], "kwargs": {"using": using}}
        if queue:
            message["queue"] = queue
        if delay:
            message["countdown"] = delay.total_seconds()
        try:
            _publish(message)
        except Exception as error:
            self._silent_until = time.monotonic() + PAUSE_AFTER_FAILURE
            raise DispatchError(error) from error


def _publish(message: dict[str, Any]) -> None:
    """Send in a thread of its own: no transport's own timeouts hold in every state of a broker. A thread that hangs
    is left to itself; being a daemon, it does not keep the process from ending.
    """
    answers: queues.SimpleQueue[Exception | None] = queues.SimpleQueue()

    def send() -> None:
        try:
            current_app.send_task(ADVANCE, ignore_result=True, retry=False, **message)
        except Exception as error:  # noqa: BLE001 - raised in the caller's thread
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=send, name="workflow_engine_publisher", daemon=True).start()
    try:
        error = answers.get(timeout=PUBLISH_TIMEOUT)
    except queues.Empty:
        raise TimeoutError(f"no answer within {PUBLISH_TIMEOUT:g} s") from None
    if error is not None:
        raise error
