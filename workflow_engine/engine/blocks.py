"""Transactions that a handler began and did not end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from workflow_engine.exceptions import TransactionBrokenError


@contextmanager
def no_block_left_open(step: str, using: str) -> Iterator[None]:
    """Around user code: the connection leaves as deep in atomic() blocks, and with the autocommit, that it came with.

    Anything else would put the engine's next transaction inside the handler's, where its COMMIT commits nothing.

    Raises:
        TransactionBrokenError: the handler returned with a block of its own open. What it wrote in there is lost.
    """
    connection = connections[using]
    connection.ensure_connection()
    before = _depth(connection)
    try:
        yield
    except BaseException:
        _leave(connection, before)
        raise
    if _leave(connection, before):
        raise TransactionBrokenError(step, "left a transaction open", _REMEDY)


_REMEDY = "Begin transactions by `with transaction.atomic():`, which ends them too, and leave autocommit as it is."

_Depth = tuple[bool, bool, int, int]


def _depth(connection: BaseDatabaseWrapper) -> _Depth:
    savepoints, blocks = len(connection.savepoint_ids), len(connection.atomic_blocks)
    return connection.autocommit, connection.in_atomic_block, savepoints, blocks


def _leave(connection: BaseDatabaseWrapper, before: _Depth) -> bool:
    """Get out of the blocks that were entered since; True if there were any."""
    _, was_inside, savepoints, blocks = before
    if _depth(connection) == before or connection.connection is None:
        return False
    if was_inside and len(connection.savepoint_ids) > savepoints:
        # The surrounding block is rolled back to its own savepoint, and with it those within.
        del connection.savepoint_ids[savepoints:]
        del connection.atomic_blocks[blocks:]
        return True
    if was_inside:
        return False
    connection.close()
    connection.connect()
    return True
