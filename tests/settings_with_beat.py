"""The tests' project with django-celery-beat: pytest --ds=tests.settings_with_beat tests/celery"""

from __future__ import annotations

from tests.settings import *  # noqa: F403 - one settings module on top of another
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "django_celery_beat"]
