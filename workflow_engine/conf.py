"""The settings: one dict `WORKFLOW_ENGINE`, read live, so `override_settings` works without ceremony."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from django.conf import settings

from workflow_engine.domain.durations import Duration, as_timedelta
from workflow_engine.exceptions import ConfigurationError


@dataclass(frozen=True, slots=True)
class Settings:
    """Every key of `WORKFLOW_ENGINE` with its default. Durations take a timedelta or seconds."""

    DISPATCHER: str = "database"
    """How work reaches a worker: "database" (the embedded worker polls), "inline" (runs at commit, in the process
    that committed), "celery", or the dotted path of a `Dispatcher` class."""

    HOLD: Duration = 60
    """How long a driver keeps an instance to itself before others may suspect that it died. Longer than any step."""

    GRACE: Duration = 60
    """How long a job handed to a broker may take to start before it is handed out again."""

    MAX_RECOVERIES: int = 5
    """So many processes may die on one instance before it fails as poison."""

    MAX_VISITS_WITHOUT_PARKING: int = 1000
    """So many steps may be entered in a row without waiting before this counts as an endless loop."""

    MAX_PAYLOAD_BYTES: int = 256 * 1024
    """The largest JSON text of one context, input, result or signal."""

    SIGNALS_BUFFER_EARLY: bool = True
    """Keep a signal that is not awaited yet. False raises `SignalNotAwaitedError` instead."""

    DRIVE_STEPS: int = 100
    """A driver gives others a turn after so many steps of one instance."""

    POLL_INTERVAL: Duration = 1
    """How often an idle embedded worker looks for work."""

    POSTPONE: Duration = 60
    """When an instance that no code here can run is looked at again."""

    TICK_INTERVAL: Duration = 10
    """How often `workflow_tick --loop` hands out due work; pending signals older than this are handed out again."""

    INFRASTRUCTURE_RETRIES: int = 5
    """How often a transaction is run again after a deadlock, a lost connection or the like."""

    IDLE_IN_TRANSACTION: Duration = 300
    """After so long without a statement the database ends a worker's transaction, so that a stopped process can't
    hold a row for ever (PostgreSQL, MariaDB)."""

    RETENTION: Duration = timedelta(days=90)
    """`workflow_prune` deletes instances that ended longer ago than this."""

    WORKER_SEEN: Duration = 120
    """A worker that has not reported for so long counts as gone."""

    REDACT: Sequence[str] = ("password", "secret", "token", "api_key", "authorization", "card_number", "cvc", "iban")
    """What the admin masks in stored data: keys that contain one of these; and the dotted path of a callable
    `(key, value)`, which returns what is shown."""

    def duration(self, name: str) -> timedelta:
        """The setting `name` as a timedelta."""
        return as_timedelta(getattr(self, name), f"WORKFLOW_ENGINE[{name!r}]")


KEYS = tuple(field.name for field in fields(Settings))


def configured() -> dict[str, Any]:
    """What the project wrote, unknown keys included."""
    return dict(getattr(settings, "WORKFLOW_ENGINE", {}))


def current() -> Settings:
    """The settings as they are now.

    Raises:
        ConfigurationError: a key is unknown.
    """
    given = configured()
    if unknown := given.keys() - set(KEYS):
        raise ConfigurationError(min(unknown), KEYS)
    return Settings(**given)
