"""A signal as a handler receives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Signal:
    """One row of the mailbox: `data` is in its JSON form; `id` grows in the order in which signals were stored."""

    id: int
    name: str
    data: Any
    actor: str
    received_at: datetime
    idempotency_key: str | None = None
