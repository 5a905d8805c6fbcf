"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class WorkflowEngineConfig(AppConfig):
    """Finds the `workflows` module of every installed app, as the admin finds `admin` modules."""

    name = "workflow_engine"
    verbose_name = _("Workflows")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the workflows; an error in one of them stops the process with its own traceback."""
        from workflow_engine import checks, checks_distributed  # noqa: F401 - registers them

        autodiscover_modules("workflows")
