"""Celery: a message with the instance's id, sent by task name after commit. The tables stay the truth.

A publish is best effort: it is bounded in time, never repeated here, and after the broker failed not even tried for a
while. What was not sent, or got lost, is handed out again by tick.
"""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from celery import _state, current_app
from celery.app import app_or_default

from workflow_engine.dispatch import Dispatcher
from workflow_engine.dispatchers.inline import InlineDispatcher
from workflow_engine.dispatchers.publishing import BrokerTroubleError, Publisher
from workflow_engine.exceptions import BrokerUnavailableError, DispatchError

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

ADVANCE = "workflow_engine.advance"
PAUSE_AFTER_FAILURE = 10.0
"""Seconds without a try after the broker failed, so that one that is away slows down no request but one."""


NO_APP = (
    "no Celery app is loaded in this process. Import yours in the package of your settings: in its __init__.py write"
    " 'from .celery import app as celery_app'"
)


def an_app_is_loaded() -> bool:
    """Whether this process has a Celery app. Else Celery would make one up, which talks to amqp://localhost."""
    return _state.default_app is not None or bool(list(_state._get_active_apps()))  # noqa: SLF001 - no public way


class CeleryDispatcher(Dispatcher):
    """Sends `workflow_engine.advance` to the queue that is asked for. With task_always_eager it drives in line."""

    pushes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._eager = InlineDispatcher()
        self._broker = _Broker()

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Publish within `publishing.TIMEOUT`, or not at all.

        Raises:
            BrokerUnavailableError: the broker did not take it in time, or a moment ago did not take another one.
            DispatchError: Celery can't send this one.
        """
        if not an_app_is_loaded():
            raise DispatchError(RuntimeError(NO_APP))
        if current_app.conf.task_always_eager:
            if not delay:  # else tick finds it when its time has come
                self._eager.dispatch(instance_id, queue=queue, using=using, delay=delay)
            return
        message: dict[str, Any] = {"args": [str(instance_id)], "kwargs": {"using": using, "queue": queue}}
        if queue:
            message["queue"] = queue
        if delay:
            # Not a countdown, which would begin when the broker is reached.
            message["eta"] = datetime.now(UTC) + delay
        try:
            self._broker.publish(message)
        except BrokerTroubleError as error:
            raise BrokerUnavailableError(error) from error
        except Exception as error:
            raise DispatchError(error) from error


class _Broker:
    """This process's way to the broker, closed for a while after a failure."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._publisher: Publisher | None = None
        self._pid = 0
        self._closed_until = 0.0

    def publish(self, message: dict[str, Any]) -> None:
        """Send, unless the way is closed.

        Raises:
            BrokerTroubleError: the broker failed, now or a moment ago.
        """
        publisher = self._open()
        try:
            publisher.publish(ADVANCE, message)
        except BrokerTroubleError:
            self._closed_until = time.monotonic() + PAUSE_AFTER_FAILURE
            raise
        self._closed_until = 0.0

    def _open(self) -> Publisher:
        with self._lock:
            now = time.monotonic()
            if now < self._closed_until:
                raise BrokerTroubleError("not tried: it failed a moment ago")
            if self._closed_until:
                # After the pause one goes first; the others learn from what becomes of it.
                self._closed_until = now + PAUSE_AFTER_FAILURE
            if self._publisher is None or not self._publisher.is_usable or self._pid != os.getpid():
                # Threads do not survive a fork.
                self._publisher, self._pid = Publisher(app_or_default()), os.getpid()
            return self._publisher
