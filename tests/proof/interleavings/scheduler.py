"""Lets several threads proceed one SQL statement at a time, in an order that a seed decides.

A thread stops before every statement, COMMIT and ROLLBACK, and at every `point`; one of those that have stopped is let
go on to its next stop. One that does not come to a stop is asked after: only if the database says that it waits for a
lock do the others go on without it. So the same seed gives the same order again, however slow the machine is.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.proof.deadlocks import noting_deadlocks
from tests.proof.interleavings.locks import sessions_that_wait

PATIENCE = 60.0
"""Seconds. Whoever has neither stopped nor waits for a lock by then never will."""

_SILENCE = 0.005
"""Seconds without news before the database is asked. It proves nothing; it only saves questions."""

_RESTLESSNESS = (0.05, 0.2, 0.5, 1.0)
"""How likely it is that another thread gets its turn, one per seed: few switches find other things than many."""

Work = Callable[[], object]


class StuckError(AssertionError):
    """A thread neither stops nor waits for a lock, or all of them wait for each other for ever."""


class AbandonedError(BaseException):
    """Ends a thread whose run is given up."""


class State(Enum):
    """Of a thread: it stopped, it is on its way to the next stop, it has ended."""

    STOPPED = "stopped"
    MOVING = "moving"
    OVER = "over"


@dataclass(eq=False)
class Actor:
    """One thread. `next`: what it does when it is let go on, in which session. `error`: what it raised."""

    name: str
    work: Work
    state: State = State.MOVING
    next: str = ""
    session: int | None = None
    error: BaseException | None = None


@dataclass
class Scheduler:
    """Runs threads in the order of one seed. `told`: that order, a line per statement."""

    seed: int
    told: list[str] = field(default_factory=list)
    switches: int = 0
    """How often another thread went on than before."""

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - no secret
        self._restlessness = self._random.choice(_RESTLESSNESS)
        self._news = threading.Condition()
        self._turn: Actor | None = None
        self._given_up = False
        self._actors: list[Actor] = []

    def run(self, works: Mapping[str, Work]) -> None:
        """Run all of them to their ends.

        Raises:
            StuckError: they don't come to an end.
            Exception: what one of them raised.
        """
        self._actors = [Actor(name, work) for name, work in works.items()]
        threads = [threading.Thread(target=self._live, args=(actor,), daemon=True) for actor in self._actors]
        for thread in threads:
            thread.start()
        try:
            self._direct()
        finally:
            with self._news:
                self._given_up = True
                self._news.notify_all()
            for thread in threads:
                thread.join(PATIENCE)
        for actor in self._actors:
            if actor.error is not None:
                raise actor.error

    def _direct(self) -> None:
        last: Actor | None = None
        while True:
            self._settle()
            stopped = [actor for actor in self._actors if actor.state is State.STOPPED]
            if not stopped:
                return
            following = last
            if following not in stopped or self._random.random() < self._restlessness:
                following = self._random.choice(stopped)
            self.switches += last not in {None, following}
            self._let_go_on(following)
            last = following

    def _let_go_on(self, actor: Actor) -> None:
        with self._news:
            self.told.append(f"{actor.name}: {actor.next}")
            actor.state = State.MOVING
            self._turn = actor
            self._news.notify_all()

    def _settle(self) -> None:
        """Until everybody has stopped, ended, or waits for the lock of somebody who has stopped."""
        end = time.monotonic() + PATIENCE
        while moving := self._moving():
            waiting = sessions_that_wait()
            blocked = [actor for actor in moving if actor.session in waiting]
            if blocked == self._moving() and self._anybody(State.STOPPED):
                return
            if time.monotonic() > end:
                raise StuckError([(actor.name, actor.next) for actor in moving], self.told)

    def _moving(self) -> list[Actor]:
        with self._news:
            self._news.wait_for(lambda: not self._anybody(State.MOVING), _SILENCE)
            return [actor for actor in self._actors if actor.state is State.MOVING]

    def _anybody(self, state: State) -> bool:
        return any(actor.state is state for actor in self._actors)

    def _live(self, actor: Actor) -> None:
        _mine.stop = lambda label: self._stop(actor, label)
        try:
            with noting_deadlocks(connections["default"]), _stopping(connections["default"]):
                point("begin")
                actor.work()
        except AbandonedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the run is
            actor.error = error
        finally:
            connections.close_all()
            with self._news:
                actor.state = State.OVER
                self._news.notify_all()

    def _stop(self, actor: Actor, label: str) -> None:
        with self._news:
            if self._given_up:
                raise AbandonedError
            # Asked by its own thread: a driver may refuse others.
            actor.next, actor.session, actor.state = label, _session(connections["default"]), State.STOPPED
            self._news.notify_all()
            self._news.wait_for(lambda: self._turn is actor or self._given_up)
            if self._turn is not actor:
                raise AbandonedError
            self._turn = None


_mine = threading.local()


def point(label: str) -> None:
    """A stop that is no statement. Nothing happens in threads that no scheduler directs."""
    stop: Callable[[str], None] | None = getattr(_mine, "stop", None)
    if stop is not None:
        stop(label)


@contextmanager
def _stopping(wrapper: BaseDatabaseWrapper) -> Iterator[None]:
    """Within the block this thread stops before every statement and before the end of every transaction."""

    def stop_first(execute: Any, sql: str, *arguments: Any) -> Any:
        point(_in_short(sql))
        return execute(sql, *arguments)

    def stopping(name: str) -> Work:
        end = getattr(wrapper, name)

        def stop_and_end() -> None:
            point(name.upper())
            end()

        return stop_and_end

    for name in ("commit", "rollback"):
        setattr(wrapper, name, stopping(name))
    try:
        with wrapper.execute_wrapper(stop_first):
            yield
    finally:
        for name in ("commit", "rollback"):
            delattr(wrapper, name)


def _in_short(sql: str) -> str:
    """What a statement does, without the columns it lists."""
    text = " ".join(sql.split()).replace('"', "").replace("`", "")
    return re.sub(r"(?<=^SELECT ).* (?=FROM)|(?<=workflow_)(\w+) \(.*", r"\1…", text)[:110]


def _session(wrapper: BaseDatabaseWrapper) -> int | None:
    """The number of this thread's session, as its driver knows it; None while it has none."""
    driver: Any = wrapper.connection
    if driver is None:
        return None
    if wrapper.vendor == "postgresql":
        return None if driver.closed else int(driver.info.backend_pid)
    return int(driver.thread_id())
