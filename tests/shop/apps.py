from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "tests.shop"
    # Not "shop": that is the example project's, and both can be installed side by side.
    label = "test_shop"
    default_auto_field = "django.db.models.BigAutoField"
