"""Celery apps of a test: each with a broker of its own, made current for the test alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celery import Celery, _state

from tests.traps.background import eventually

MEMORY = "memory://"
"""A broker within this process."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a worker would get."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    eta: datetime | None
    headers: dict[str, Any]


@contextmanager
def app_at(url: str, **conf: Any) -> Iterator[Celery]:
    """A Celery app, which is the current one within the block."""
    app = Celery("tests", broker=url, set_as_current=False)
    app.conf.update(conf)
    before = _state._tls.current_app
    app.set_current()
    try:
        yield app
    finally:
        _state._tls.current_app = before
        app.close()


def messages(app: Celery, queue: str = "celery") -> list[Message]:
    """Take all messages out of a queue."""
    found = []
    with app.connection_for_read() as connection:
        source = connection.SimpleQueue(queue)
        while len(source):
            raw = source.get(block=False)
            raw.ack()
            args, kwargs, _ = json.loads(raw.body) if isinstance(raw.body, str | bytes) else raw.payload
            eta = raw.headers["eta"]
            found.append(
                Message(
                    task=raw.headers["task"],
                    args=args,
                    kwargs=kwargs,
                    eta=datetime.fromisoformat(eta) if eta else None,
                    headers=raw.headers,
                )
            )
    return found


def end_publisher(dispatcher: Any) -> None:
    """Let the thread of a Celery dispatcher end, which otherwise lives as long as the process."""
    if dispatcher._broker._publisher is not None:
        dispatcher._broker._publisher.give_up()


def publishers_end() -> None:
    """Wait until no thread hangs in a broker any more."""
    eventually(lambda: not any(thread.name == "workflow_engine_publisher" for thread in threading.enumerate()))
