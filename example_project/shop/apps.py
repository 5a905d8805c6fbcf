"""The shop as a Django app. Its `workflows` module is found by the engine, as `admin` is by the admin."""

from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "example_project.shop"
    label = "shop"
    default_auto_field = "django.db.models.BigAutoField"
