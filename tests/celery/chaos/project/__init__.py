"""The project of a run's processes: celery -A tests.celery.chaos.project worker"""

from __future__ import annotations

from tests.celery.chaos.project.app import app as celery_app

__all__ = ["celery_app"]
