"""The tables: effects of jobs, and numbers to make rows from on the server."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Effect(models.Model):
    """A business row that a job writes."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField()

    objects: ClassVar[models.Manager[Effect]] = models.Manager()

    class Meta:
        app_label = "work"  # also where the app is not installed
        db_table = "bench_effect"

    def __str__(self) -> str:
        return f"effect of job #{self.job_id}"


class Number(models.Model):
    """0 to 999."""

    n = models.IntegerField(primary_key=True)

    objects: ClassVar[models.Manager[Number]] = models.Manager()

    class Meta:
        app_label = "work"
        db_table = "bench_number"

    def __str__(self) -> str:
        return str(self.n)
