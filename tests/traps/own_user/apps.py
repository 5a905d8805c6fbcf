from __future__ import annotations

from django.apps import AppConfig


class OwnUserConfig(AppConfig):
    name = "tests.traps.own_user"
    label = "own_user"
