"""Settings of the example project: everything a real project needs for the engine, and nothing else.

It runs as it is, on SQLite. What a real deployment must set comes from the environment, with a default
that is good enough for a laptop.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent
VAR_DIR = BASE_DIR / "var"

DEBUG = os.environ.get("SHOP_DEBUG", "1") == "1"
SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "for-the-demo-only-anyone-can-read-this")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "workflow_engine",
    "example_project.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DATABASE", VAR_DIR / "demo.sqlite3"),
        "OPTIONS": {
            # SQLite has one writer at a time. IMMEDIATE takes that place when a transaction begins, so that a second
            # writer waits (up to `timeout` seconds) instead of failing half-way; WAL lets readers go on meanwhile.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

STATIC_URL = "static/"
LOGIN_URL = "admin:login"

# The engine works with this dict empty or missing: what is here is what you may want to change first.
WORKFLOW_ENGINE: dict[str, Any] = {
    # Who drives instances: "database" is `manage.py workflow_worker`, which needs nothing but the database.
    "DISPATCHER": "database",
    # A signal that comes before its step waits in the mailbox. False refuses it instead.
    "SIGNALS_BUFFER_EARLY": True,
    # How soon an order goes on after the process that worked on it died. It must be longer than any step takes; the
    # shop's are short. (While an activity runs, its lease says so instead: see LEASE in shop/workflows.py.)
    "HOLD": 10,
    # How often an idle worker looks for work: who clicks on the pages should not have to wait.
    "POLL_INTERVAL": 0.2,
}

# What the payment provider and the shop both know: webhooks are signed with it.
SHOP_WEBHOOK_SECRET = os.environ.get("SHOP_WEBHOOK_SECRET", "whsec-for-the-demo-only")
# Where the payment provider and the carrier are. Here both are one small server: `manage.py demo` starts it for itself,
# `manage.py outside` for everybody else. It keeps its books in a file of its own.
SHOP_OUTSIDE_URL = os.environ.get("SHOP_OUTSIDE_URL", "http://127.0.0.1:8765")
SHOP_OUTSIDE_LEDGER = os.environ.get("SHOP_OUTSIDE_LEDGER", VAR_DIR / "outside.sqlite3")
# Lets `manage.py demo` empty the shop's tables and create a login with a well-known password, and turns on the
# simulated payment page. Never set it where real orders live.
SHOP_DEMO = DEBUG

# A step that is tried again is a warning: worth keeping in a file, not worth a traceback in the middle of the demo.
# And a webhook that comes too early is answered 503 on purpose, which Django would log as an error.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "not_503": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: getattr(record, "status_code", None) != 503,
        }
    },
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line", "level": "ERROR"},
        "file": {
            "class": "logging.FileHandler",
            "filename": VAR_DIR / "workflow_engine.log",
            "formatter": "line",
            "delay": True,
            "encoding": "utf-8",
        },
    },
    "loggers": {
        "workflow_engine": {"handlers": ["console", "file"], "level": "WARNING", "propagate": False},
        "django.request": {"filters": ["not_503"]},
    },
}
