"""The Celery app, as every project has one."""

from __future__ import annotations

from celery import Celery

app = Celery("chaos")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
