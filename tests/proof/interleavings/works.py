"""What a thread does in a meeting, and how far an instance is before it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import OperationalError, transaction

from tests.proof import programs
from tests.proof.clients import request, send, start
from tests.proof.deeds import interrupt_with
from tests.proof.interleavings.scheduler import Work, point
from tests.proof.programs import LEASE
from tests.proof.recovery import pass_time, work
from tests.shop.models import Counter
from workflow_engine import engine
from workflow_engine.engine.driving import drive
from workflow_engine.exceptions import InstanceNotFoundError
from workflow_engine.prune import prunable, prune
from workflow_engine.worker import Worker


def driving(instance: UUID) -> Work:
    return partial(drive, instance, "default")


def advancing(instance: UUID, turns: int = 4) -> Work:
    """Turn by turn, so that another driver may have the next one."""

    def advance() -> None:
        for _ in range(turns):
            engine.advance(instance)

    return advance


def both(*works: Work) -> Work:
    def one_after_the_other() -> None:
        for each in works:
            each()

    return one_after_the_other


def sending(instance: UUID, name: str, call: str) -> Work:
    return both(partial(send, instance, name, call), driving(instance))


def requesting(verb: str, instance: UUID) -> Work:
    return both(partial(request, verb, instance), driving(instance))


def fresh(program: Any, key: str = "the start") -> UUID:
    return start(program, key)


def parked(program: Any) -> UUID:
    instance = start(program, "the start")
    work()
    return instance


def interrupted(program: Any) -> UUID:
    """Its activity stops in the middle, so that others can go on there."""
    instance = start(program, "the start")
    interrupt_with(partial(point, "in the middle of the activity"))
    return instance


def time_passes() -> None:
    point("time passes")
    pass_time(LEASE * 1.1)


def starting(key: str) -> Work:
    return partial(start, programs.Ladder, key)


def starting_inside_a_transaction(*keys: str, fails: bool = False) -> Work:
    """The caller's own row and its starts; a caller that meets a deadlock begins again, as Django's users must."""

    def once() -> None:
        with transaction.atomic():
            Counter.objects.create(name=f"by a caller: {secrets.token_hex(8)}")
            for key in keys:
                start(programs.Ladder, key)
            if fails:
                raise ZeroDivisionError

    def caller() -> None:
        for _ in range(5):
            with suppress(OperationalError, ZeroDivisionError):
                return once()
            if fails:
                return None
        raise AssertionError("five deadlocks in a row")

    return caller


def pruning(*, with_failed: bool) -> Work:
    return lambda: prune(prunable("default", timedelta(), with_failed=with_failed))


def unless_it_is_gone(work_on_it: Work) -> Work:
    """Who is told that there is no such instance has his answer."""

    def unless_it_is_gone() -> None:
        with suppress(InstanceNotFoundError):
            work_on_it()

    return unless_it_is_gone


def working() -> Work:
    return lambda: Worker("default").run(burst=True)
