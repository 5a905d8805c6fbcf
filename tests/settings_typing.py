"""What mypy's Django plugin sees: the example project, and the tests' app beside it. Nothing runs with it."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403  # Everything but the setting below is the same project.
from example_project.settings import INSTALLED_APPS as _EXAMPLE_APPS

INSTALLED_APPS = [*_EXAMPLE_APPS, "tests.shop"]
