"""tests.settings with another user model. The example project is left out: its migrations know Django's own."""

from __future__ import annotations

from tests.settings import *  # noqa: F403 - everything else is the same project
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [app for app in INSTALLED_APPS if app != "example_project.shop"] + ["tests.traps.own_user"]
AUTH_USER_MODEL = "own_user.Member"
