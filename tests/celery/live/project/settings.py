"""The project of the workers that a live test starts; its broker and queue come from the environment."""

from __future__ import annotations

import os

from tests.celery.live import cells
from tests.settings import *  # noqa: F403 - one settings module on top of another
from tests.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.celery.live.project"]
DATABASES = {alias: {**database, "CONN_MAX_AGE": None} for alias, database in DATABASES.items()}
WORKFLOW_ENGINE = cells.ENGINE_SETTINGS

CELERY_BROKER_URL = os.environ.get(cells.BROKER_VARIABLE, "memory://")
CELERY_BROKER_TRANSPORT_OPTIONS = cells.transport_options(CELERY_BROKER_URL)
CELERY_TASK_DEFAULT_QUEUE = cells.queue()
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_DB_REUSE_MAX = 1000
