"""As in django-celery-beat 2.9."""

# ruff: noqa: DJ001, DJ008  (theirs is theirs)

from __future__ import annotations

from django.db import models


class SolarSchedule(models.Model):
    event = models.CharField(max_length=24)
    latitude = models.DecimalField(max_digits=9, decimal_places=6)
    longitude = models.DecimalField(max_digits=9, decimal_places=6)

    class Meta:
        app_label = "django_celery_beat"


class IntervalSchedule(models.Model):
    every = models.IntegerField()
    period = models.CharField(max_length=24)

    class Meta:
        app_label = "django_celery_beat"


class ClockedSchedule(models.Model):
    clocked_time = models.DateTimeField()

    class Meta:
        app_label = "django_celery_beat"


class CrontabSchedule(models.Model):
    minute = models.CharField(max_length=240, default="*")
    hour = models.CharField(max_length=96, default="*")
    day_of_month = models.CharField(max_length=124, default="*")
    month_of_year = models.CharField(max_length=64, default="*")
    day_of_week = models.CharField(max_length=64, default="*")
    timezone = models.CharField(max_length=63, default="UTC")

    class Meta:
        app_label = "django_celery_beat"


class PeriodicTask(models.Model):
    name = models.CharField(max_length=200, unique=True)
    task = models.CharField(max_length=200)
    interval = models.ForeignKey(IntervalSchedule, models.CASCADE, null=True)
    crontab = models.ForeignKey(CrontabSchedule, models.CASCADE, null=True)
    solar = models.ForeignKey(SolarSchedule, models.CASCADE, null=True)
    clocked = models.ForeignKey(ClockedSchedule, models.CASCADE, null=True)
    args = models.TextField(default="[]")
    kwargs = models.TextField(default="{}")
    queue = models.CharField(max_length=200, null=True, default=None)
    exchange = models.CharField(max_length=200, null=True, default=None)
    routing_key = models.CharField(max_length=200, null=True, default=None)
    headers = models.TextField(default="{}")
    priority = models.PositiveIntegerField(null=True, default=None)
    expires = models.DateTimeField(null=True)
    expire_seconds = models.PositiveIntegerField(null=True)
    one_off = models.BooleanField(default=False)
    start_time = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True)

    class Meta:
        app_label = "django_celery_beat"
