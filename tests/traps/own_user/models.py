"""The user model."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models


class Member(AbstractBaseUser):
    """Known by a mail address; may do everything."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    nickname = models.CharField(max_length=50, blank=True, default="")

    objects: BaseUserManager[Any] = BaseUserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    is_staff = True

    def __str__(self) -> str:
        return self.email

    def has_perm(self, permission: str, obj: object = None) -> bool:
        """Asked by the admin."""
        return True

    def has_module_perms(self, app_label: str) -> bool:
        """Asked by the admin."""
        return True
