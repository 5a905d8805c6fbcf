"""The embedded worker: a loop that fetches due instances from the tables. No broker.

Imports lazily: a spawned process imports this package before Django is set up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflow_engine.worker.loop import Report, Worker

__all__ = ["Report", "Worker"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from workflow_engine.worker import loop

        return getattr(loop, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
