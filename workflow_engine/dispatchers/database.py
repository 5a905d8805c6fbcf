"""The default: the embedded worker polls the tables, so there is nothing to hand out."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from workflow_engine.dispatch import Dispatcher

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID


class DatabaseDispatcher(Dispatcher):
    """Workers fetch work themselves (`manage.py workflow_worker`)."""

    pushes: ClassVar[bool] = False

    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Nothing: the committed row is the message."""
