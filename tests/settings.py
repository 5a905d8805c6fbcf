"""The project that the tests run in: the smallest set of apps, on the database that the environment names."""

from __future__ import annotations

from tests.databases import database

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

DATABASES = {"default": database(), "other": database("_other")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Hashing a password is no part of any test.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Of the example project. Its URLs are its own: tests/example asks for them.
SHOP_WEBHOOK_SECRET = "only for the tests"
SHOP_DEMO = True
LOGIN_URL = "admin:login"
