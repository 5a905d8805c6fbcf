"""What the workflows of the tests write: rows whose number tells how often something was committed."""

from __future__ import annotations

from django.db import models


class Counter(models.Model):
    """A number that steps count up; its name is unique, so that inserting it twice is an error of the database."""

    name = models.CharField(max_length=50, unique=True)
    value = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


class Effect(models.Model):
    """One run of a step that was committed."""

    instance_id = models.UUIDField()
    step = models.CharField(max_length=100)
    visit = models.PositiveIntegerField(default=1)
    note = models.CharField(max_length=100, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.step} of {self.instance_id}"


class Line(models.Model):
    """A row that needs its counter; SQLite and PostgreSQL find out at COMMIT that there is none."""

    counter = models.ForeignKey(Counter, models.CASCADE)

    def __str__(self) -> str:
        return f"line of {self.counter_id}"
