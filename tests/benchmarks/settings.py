"""The project of the live tests' workers, but with the engine's settings as they are when a project sets none."""

from __future__ import annotations

from tests.celery.live.project.settings import *  # noqa: F403 - one settings module on top of another
from tests.celery.live.project.settings import DATABASES

WORKFLOW_ENGINE = {"DISPATCHER": "celery"}
# As durable as the server is by default: without the haste of a test.
DATABASES = {alias: {**entry, "OPTIONS": {"connect_timeout": 10}} for alias, entry in DATABASES.items()}
