"""The project of the workers that a live test starts: celery -A tests.celery.live.project worker"""

from __future__ import annotations

from tests.celery.live.project.app import app as celery_app

__all__ = ["celery_app"]
