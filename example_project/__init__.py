"""A small shop that shows what the workflow engine is for: run it with `python manage.py demo`."""

from __future__ import annotations

import os

if os.environ.get("DJANGO_SETTINGS_MODULE") == "example_project.settings_celery":
    # A project on Celery imports its app here, so that every process has it. This one also runs without Celery.
    from .celery import app as celery_app

    __all__ = ["celery_app"]
