"""Notes in the ledger that the database ended one of two transactions which waited for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.proof import ledger

_MYSQL_DEADLOCK = 1213


@contextmanager
def noting_deadlocks(wrapper: BaseDatabaseWrapper) -> Iterator[None]:
    """Within the block deadlocks that this connection meets are noted."""

    def noted(execute: Any, *arguments: Any) -> Any:
        try:
            return execute(*arguments)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) == "40P01" or error.args[:1] == (_MYSQL_DEADLOCK,):
                ledger.write("met", event="deadlock")
            raise

    with wrapper.execute_wrapper(noted):
        yield
