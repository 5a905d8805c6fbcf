"""The project that the tests run in: a SQLite file, opened the way the engine asks for, and the smallest set of apps.

Each test run has a file of its own, so that two runs don't meet. A process that a test starts opens the same file: the
session's database fixture puts its name into the environment (see conftest.py).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

DATABASE_VARIABLE = "WORKFLOW_ENGINE_TEST_DATABASE"
DATABASE_FILE = os.environ.get(
    DATABASE_VARIABLE, str(Path(tempfile.gettempdir()) / f"workflow_engine_{os.getpid()}.sqlite3")
)

SECRET_KEY = "only for the tests"
ALLOWED_HOSTS = ["testserver"]
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
STATIC_URL = "static/"
ROOT_URLCONF = "tests.urls"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "workflow_engine",
    "tests.shop",
    "example_project.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATABASE_FILE,
        "TEST": {"NAME": DATABASE_FILE},
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # A test database need not outlive a power failure, only a killed process.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Hashing a password is no part of any test.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Of the example project. Its URLs are its own: tests/example asks for them.
SHOP_WEBHOOK_SECRET = "only for the tests"
SHOP_DEMO = True
LOGIN_URL = "admin:login"
