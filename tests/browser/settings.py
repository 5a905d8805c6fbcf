"""The tests' project as a browser sees it: with static files, and under a strict Content-Security-Policy."""

from __future__ import annotations

from tests.settings import *  # noqa: F403 - the same project
from tests.settings import INSTALLED_APPS as _APPS
from tests.settings import MIDDLEWARE as _MIDDLEWARE

ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
INSTALLED_APPS = [*_APPS, "django.contrib.staticfiles"]
MIDDLEWARE = ["tests.browser.policy.StrictPolicy", *_MIDDLEWARE]
ROOT_URLCONF = "tests.browser.urls"
