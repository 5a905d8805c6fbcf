"""Publishing within bounds: a thread of its own talks to the broker, so that who has a message waits for so long only.

Why a thread: no transport's own timeouts hold in every state of a broker. Why a connection of its own: Celery's pooled
ones try for seconds to reach a broker that refuses, and their Redis sockets wait without end, so that a thread which
hangs in one would never come back.
"""

from __future__ import annotations

import selectors
import threading
import time
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

TIMEOUT = 2.0
"""Seconds that a caller waits for the broker."""

_SOCKET_TIMEOUT = TIMEOUT + 1
"""Ends a thread whose caller has stopped waiting."""

_BOUNDS: dict[str, dict[str, Any]] = {
    "redis": {"max_retries": 0, "socket_timeout": _SOCKET_TIMEOUT, "socket_connect_timeout": _SOCKET_TIMEOUT},
    "amqp": {"max_retries": 0, "read_timeout": _SOCKET_TIMEOUT, "write_timeout": _SOCKET_TIMEOUT},
}
"""Transport options by driver."""


class BrokerTroubleError(Exception):
    """Not this message is the problem: the broker did not answer, refused the connection, or broke it."""


class Publisher:
    """Sends one message after the other; what its caller has stopped waiting for is not sent any more.

    Args:
        app: whose broker it is.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        # Here, because it imports much: that is no time that a broker took.
        self._driver: str = app.connection_for_write().transport.driver_type
        self._jobs: SimpleQueue[tuple[Future[None], str, dict[str, Any]] | None] = SimpleQueue()
        self._given_up = False
        # A daemon: one that hangs must not keep the process from ending.
        threading.Thread(target=self._work, name="workflow_engine_publisher", daemon=True).start()

    def publish(self, task: str, message: dict[str, Any]) -> None:
        """Send and wait for at most TIMEOUT.

        Raises:
            BrokerTroubleError: the broker is the problem; this publisher is no good any more if it was too slow.
            Exception: Celery can't send this message, say to a queue that it does not know.
        """
        job: Future[None] = Future()
        self._jobs.put((job, task, message))
        try:
            job.result(TIMEOUT)
        except TimeoutError as error:
            if job.done():  # its own words
                raise
            job.cancel()
            self.give_up()
            raise BrokerTroubleError(f"no answer within {TIMEOUT:g} s") from error

    def give_up(self) -> None:
        """Let the thread end as soon as it gets to it."""
        self._given_up = True
        self._jobs.put(None)

    @property
    def is_usable(self) -> bool:
        """Whether messages can still be given to it."""
        return not self._given_up

    def _work(self) -> None:
        link: _Link | None = None
        while (item := self._jobs.get()) is not None and not self._given_up:
            job, task, message = item
            if not job.set_running_or_notify_cancel():
                continue
            try:
                link = self._send(link, task, message)
            except Exception as error:  # noqa: BLE001 - raised in the thread of the caller
                link = None
                job.set_exception(error)
            else:
                job.set_result(None)
        if link is not None:
            link.close()

    def _send(self, link: _Link | None, task: str, message: dict[str, Any]) -> _Link:
        """Send through `link`. One that broke while it was idle says nothing about the broker: that is found out by a
        new one.
        """
        started = time.monotonic()
        if link is not None and not link.is_stale():
            try:
                link.send(self._app, task, message)
            except BrokerTroubleError:
                if time.monotonic() - started >= TIMEOUT:
                    raise
            else:
                return link
        link = _Link(self._app, _BOUNDS.get(self._driver, {}))
        link.send(self._app, task, message)
        return link


class _Link:
    """One connection to the broker, established within bounds."""

    def __init__(self, app: Celery, bounds: dict[str, Any]) -> None:
        own = app.conf.broker_transport_options
        bounds = {name: value for name, value in bounds.items() if name == "max_retries" or name not in own}
        self._connection = app.connection_for_write(transport_options=bounds, connect_timeout=_SOCKET_TIMEOUT)
        try:
            self._connection.ensure_connection(max_retries=0)
        except Exception as error:
            raise BrokerTroubleError(str(error) or type(error).__name__) from error
        self._producer = app.amqp.Producer(self._connection, auto_declare=False)

    def send(self, app: Celery, task: str, message: dict[str, Any]) -> None:
        """Publish; Celery's routes, serializer and signals apply."""
        try:
            app.send_task(
                task, producer=self._producer, result_cls=_NoResult, ignore_result=True, retry=False, **message
            )
        except (OperationalError, OSError) as error:
            raise BrokerTroubleError(str(error) or type(error).__name__) from error

    def is_stale(self) -> bool:
        """Whether an AMQP broker has closed it meanwhile: what is written then vanishes without an error."""
        sock = getattr(self._connection.connection, "sock", None)
        if sock is None:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            return bool(selector.select(0))

    def close(self) -> None:
        """Let go of it without waiting for the broker's goodbye."""
        self._connection.collect(socket_timeout=_SOCKET_TIMEOUT)


class _NoResult:
    """What send_task makes of the answer. An AsyncResult would set up the project's result backend in this thread."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.ignored = True
