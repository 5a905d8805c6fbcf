"""Faults of the database: a COMMIT that breaks off. tests/traps has the same on the wire, by a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any

import pytest
from django.db import OperationalError, connections

from tests.proof import ledger


class Fate(StrEnum):
    """What becomes of a COMMIT. Of the latter two the client gets the same error, which does not tell which it was."""

    WELL = "answered"
    ANSWER_LOST = "commit unknown, carried out"
    REQUEST_LOST = "commit unknown, not carried out"


@contextmanager
def commits_meet(decide: Callable[[], Fate], using: str = "default") -> Iterator[None]:
    """Within the block `decide` is asked about every COMMIT of this process on that connection."""
    connection: Any = connections[using]
    commit = connection._commit

    def attempted() -> None:
        fate = decide()
        if fate is not Fate.REQUEST_LOST:
            commit()
        if fate is not Fate.WELL:
            ledger.write("met", event=fate)
            connection.connection.close()
            connection.errors_occurred = True
            raise OperationalError("the connection was lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_commit", attempted)
        yield


@contextmanager
def breaking_commits(*, carried_out: bool, times: int = 1, after: int = 0, using: str = "default") -> Iterator[None]:
    """Within the block a COMMIT breaks off.

    Args:
        carried_out: whether the database carried it out before.
        times: so many of them.
        after: so many go well before.
        using: the database alias.
    """
    numbers = count()
    fate = Fate.ANSWER_LOST if carried_out else Fate.REQUEST_LOST
    with commits_meet(lambda: fate if after <= next(numbers) < after + times else Fate.WELL, using):
        yield


def now_and_then(chance: Random, of_a_hundred: float) -> Callable[[], Fate]:
    """So many of a hundred COMMITs break off, one half of them carried out."""

    def decide() -> Fate:
        if chance.random() * 100 >= of_a_hundred:
            return Fate.WELL
        return chance.choice([Fate.ANSWER_LOST, Fate.REQUEST_LOST])

    return decide
