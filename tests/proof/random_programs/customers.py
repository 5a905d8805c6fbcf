"""Those who start random programs, and what they do to them: they answer, pause and resume, cancel, repair and retry.

Each call is repeated until it is answered, as a client does that wants to be sure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeVar
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import connection

from tests.proof.clients import request, send, start
from tests.proof.random_programs.plans import Plan
from tests.proof.random_programs.workflows import define, repair
from workflow_engine.models import WorkflowInstance

_PATIENCE = 60.0

R = TypeVar("R")


class Customers:
    """They start `instances` of each plan.

    `started`: what they have started, and after which plan.
    """

    def __init__(self, plans: Sequence[Plan], instances: int, chance: Random) -> None:
        self._chance = chance
        self.started: list[tuple[UUID, Plan]] = []
        for plan in plans:
            definition = define(plan)
            for number in range(instances):
                self.started.append((patiently(partial(start, definition, f"{plan.name}, {number}")), plan))
        self._calls = self._all_calls()
        self._so_many = len(self._calls)

    def call(self, share: float) -> None:
        """Make that share of all the calls that are to be made, but for those that are made already.

        Args:
            share: 1 is all of them.
        """
        while len(self._calls) > self._so_many * (1 - share):
            patiently(self._calls.pop())

    def look_after(self) -> None:
        """Resume what is paused, and repair and retry what has failed."""
        patiently(resume_what_is_paused)
        patiently(repair_what_has_failed)

    def _all_calls(self) -> list[Callable[[], None]]:
        """In any order, some of them twice."""
        calls: list[Callable[[], None]] = []
        for instance, plan in self.started:
            for number, name in enumerate(plan.answers()):
                calls.append(partial(send, instance, name, f"{instance}: {number}"))
            if plan.status == "cancelled":
                calls.append(partial(request, "cancel", instance))
            if self._chance.random() < 0.3:
                calls.append(partial(request, "pause", instance))
        calls += [call for call in calls if self._chance.random() < 0.3]
        self._chance.shuffle(calls)
        return calls


def resume_what_is_paused() -> None:
    """Whoever paused it."""
    for instance in WorkflowInstance.objects.filter(paused=True):
        request("resume", instance.pk)


def repair_what_has_failed() -> None:
    """And retry it."""
    for instance in WorkflowInstance.objects.filter(status="failed"):
        repair(instance.pk)
        request("retry", instance.pk)


def patiently(call: Callable[[], R]) -> R:
    """Repeat the call while the database has trouble.

    Raises:
        Error: it has been having it for too long.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except DatabaseError:
            if time.monotonic() > end:
                raise
            connection.close()
            time.sleep(0.1)
