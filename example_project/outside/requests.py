"""A request, as the desks that answer it see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .ledger import Answer, Ledger
from .luck import Luck


class BadRequestError(Exception):
    """The request lacks something."""


@dataclass(frozen=True, slots=True)
class Request:
    """`name` is what the path names, `client` is who asks, as they say."""

    body: Mapping[str, Any]
    query: Mapping[str, str]
    name: str
    idempotency_key: str
    client: str
    ledger: Ledger
    luck: Luck

    @property
    def reference(self) -> str:
        """The shop's name for what this is about: its order's number."""
        return str(self.get("reference"))

    @property
    def key(self) -> str:
        if not self.idempotency_key:
            raise BadRequestError("idempotency_key_missing")
        return self.idempotency_key

    def get(self, name: str) -> Any:
        if name not in self.body:
            raise BadRequestError(f"{name}_missing")
        return self.body[name]


@dataclass(frozen=True, slots=True)
class Route:
    """What answers to a method and a path (a regular expression with at most one group).

    `operation` names what can go wrong, and is counted; a route without one only looks things up and always works.
    """

    method: str
    path: str
    respond: Callable[[Request], Answer]
    operation: str = ""
