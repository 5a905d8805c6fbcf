"""Database errors that a handler did not let through, and did not undo either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import Error

from workflow_engine.engine.infrastructure import is_infrastructure


class Statements:
    """Watches a handler's statements, as an execute wrapper of the engine's connection.

    An error that is caught around an atomic() block (or a savepoint) of the handler's own is undone: the savepoint was
    rolled back. Any other error that does not come out of the handler leaves a transaction that can't be trusted:
    PostgreSQL has given it up, MariaDB may have lost all of it or a part, and Django does not notice errors of cursors.
    """

    def __init__(self) -> None:
        self._log: list[str | Error] = []
        """Names of savepoints, and the errors since."""

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django's signature
        """Execute the statement and note what matters."""
        try:
            result = execute(sql, params, many, context)
        except Error as error:
            self._log.append(error)
            raise
        match str(sql).split():
            case ["SAVEPOINT", name]:
                self._log.append(name)
            case ["RELEASE", "SAVEPOINT", name] if self._log and self._log[-1] == name:
                self._log.pop()
            case ["ROLLBACK", "TO", "SAVEPOINT", name]:
                self._undo_since(name)
        return result

    @property
    def errors(self) -> list[Error]:
        """Those that no savepoint undid, in order."""
        return [entry for entry in self._log if isinstance(entry, Error)]

    @property
    def trouble(self) -> Error | None:
        """The first of them that is the database's own trouble and says nothing about the handler."""
        return next((error for error in self.errors if is_infrastructure(error)), None)

    def _undo_since(self, savepoint: str) -> None:
        if savepoint in self._log:
            newest = len(self._log) - 1 - self._log[::-1].index(savepoint)
            del self._log[newest + 1 :]
        else:
            self._log.clear()
