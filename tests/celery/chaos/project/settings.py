"""As docs/howto/deploying.md says, but for how long everything takes."""

from __future__ import annotations

import os

from tests.celery.chaos.environment import BROKER_VARIABLE, ENGINE_SETTINGS
from tests.databases import database
from tests.settings import *  # noqa: F403 - one settings module on top of another
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.celery.chaos.project"]
# Without the haste of other tests: what is acknowledged must be there after the server was killed.
DATABASES = {"default": {**database(), "OPTIONS": {"connect_timeout": 5}, "CONN_MAX_AGE": None}}
WORKFLOW_ENGINE = ENGINE_SETTINGS

CELERY_BROKER_URL = os.environ.get(BROKER_VARIABLE, "memory://")
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"socket_timeout": 10, "socket_connect_timeout": 5} if CELERY_BROKER_URL.startswith("redis") else {}
)
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_DB_REUSE_MAX = 1000
