"""A project whose models get another primary key by default: the package's migrations must not differ under it."""

from __future__ import annotations

from tests.settings import *  # noqa: F403  # Everything but the setting below is the same project.

DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
