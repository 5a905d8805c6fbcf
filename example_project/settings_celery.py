"""The example project on Celery: settings.py, but for a database server, a broker, and who drives instances.

Where they are comes from the environment; the defaults are those of a developer's own machine:

SHOP_DATABASE_URL  postgresql://postgres@127.0.0.1:5432/workflow_engine_demo
                   MariaDB or MySQL: mysql://root@127.0.0.1:3306/workflow_engine_demo
SHOP_BROKER_URL    redis://127.0.0.1:6379/0
                   RabbitMQ: amqp://guest:guest@127.0.0.1:5672//

`manage.py demo` creates the database if it is not there, and keeps to it and to a queue of the same name. What else a
URL leaves out is its server's default. It needs the extra `services`; with `beat` too, the periodic tasks are rows that
`manage.py workflow_beat` installs. (django-celery-beat refuses the newest Django for a while after each release; then
they are in CELERY_BEAT_SCHEDULE.)
"""

from __future__ import annotations

import os
from datetime import timedelta
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

from example_project.settings import *  # noqa: F403 - one settings module on top of another
from example_project.settings import INSTALLED_APPS, TIME_ZONE, VAR_DIR, WORKFLOW_ENGINE

_BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    # A server that vanished is noticed: after so many seconds, or milliseconds.
    "postgresql": ("django.db.backends.postgresql", {"connect_timeout": 5, "tcp_user_timeout": 20_000}),
    "mysql": ("django.db.backends.mysql", {"connect_timeout": 5}),
}
_database = urlsplit(os.environ.get("SHOP_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/workflow_engine_demo"))
if _database.scheme not in _BACKENDS or not _database.path.strip("/"):
    msg = f"SHOP_DATABASE_URL is {_database.scheme}://…: write postgresql://user:password@host:port/name, or mysql://…"
    raise ValueError(msg)
_engine, _options = _BACKENDS[_database.scheme]

DATABASES = {
    "default": {
        "ENGINE": _engine,
        "NAME": _database.path.strip("/"),
        "HOST": _database.hostname or "127.0.0.1",
        "PORT": str(_database.port or ""),
        "USER": unquote(_database.username or ""),
        "PASSWORD": unquote(_database.password or ""),
        # A worker keeps its connection; see CELERY_DB_REUSE_MAX.
        "CONN_MAX_AGE": None,
        "OPTIONS": _options,
    }
}

# How often is looked for what is due, and how long a message may wait for a worker before it is sent again: both are
# shorter than by default, because nobody likes to wait for a demo.
TICK_INTERVAL = 2
WORKFLOW_ENGINE = {**WORKFLOW_ENGINE, "DISPATCHER": "celery", "TICK_INTERVAL": TICK_INTERVAL, "GRACE": 10}

CELERY_BROKER_URL = os.environ.get("SHOP_BROKER_URL", "redis://127.0.0.1:6379/0")
# Whoever else uses the broker does not get our messages.
CELERY_TASK_DEFAULT_QUEUE = DATABASES["default"]["NAME"]
_TRANSPORTS: dict[str, dict[str, Any]] = {
    # RabbitMQ tells that it has a message on disk.
    "amqp": {"confirm_publish": True},
    "redis": {
        "global_keyprefix": f"{CELERY_TASK_DEFAULT_QUEUE}:",
        # A Redis that stops answering must not hold workers and beat for ever.
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        # Seconds until a message that nobody acknowledged is delivered again: longer than any activity may take.
        "visibility_timeout": 3600,
    },
}
CELERY_BROKER_TRANSPORT_OPTIONS = _TRANSPORTS.get(urlsplit(CELERY_BROKER_URL).scheme, {})
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Celery's defaults, and what the engine needs: with pickle, who can write to the broker can run code in the workers.
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
# A worker takes a message when it can begin with it: one slow activity holds none that others could take.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# So many tasks per database connection. Else Celery closes it after each.
CELERY_DB_REUSE_MAX = 1000
CELERY_TIMEZONE = TIME_ZONE

# Without a tick nothing that waits for its time moves.
if find_spec("django_celery_beat"):
    INSTALLED_APPS = [*INSTALLED_APPS, "django_celery_beat"]
    CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
else:
    CELERY_BEAT_SCHEDULE = {
        "tick": {"task": "workflow_engine.tick", "schedule": TICK_INTERVAL, "options": {"expires": 3600}},
        "prune": {"task": "workflow_engine.prune", "schedule": timedelta(days=1)},
    }
    CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / f"{DATABASES['default']['NAME']}-beat")
