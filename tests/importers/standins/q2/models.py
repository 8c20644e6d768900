"""As in django-q2 1.11."""

# ruff: noqa: DJ001, DJ008  (theirs is theirs)

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Schedule(models.Model):
    name = models.CharField(max_length=100, null=True)
    func = models.CharField(max_length=256)
    hook = models.CharField(max_length=256, null=True)
    args = models.TextField(null=True)
    kwargs = models.TextField(null=True)
    schedule_type = models.CharField(max_length=2, default="O")
    minutes = models.PositiveSmallIntegerField(null=True)
    repeats = models.IntegerField(default=-1)
    next_run = models.DateTimeField(default=timezone.now, null=True)
    cron = models.CharField(max_length=100, null=True)
    cluster = models.CharField(max_length=100, null=True, default=None)
    intended_date_kwarg = models.CharField(max_length=100, null=True)

    class Meta:
        app_label = "django_q"
