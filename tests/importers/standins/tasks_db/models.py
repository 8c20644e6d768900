"""As in django-tasks-db 0.13."""

# ruff: noqa: DJ008  (theirs is theirs)

from __future__ import annotations

import uuid

from django.db import models


class DBTaskResult(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    status = models.CharField(max_length=10, default="READY")
    enqueued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    args_kwargs = models.JSONField()
    priority = models.IntegerField(default=0)
    task_path = models.TextField()
    queue_name = models.CharField(max_length=32, default="default")
    backend_name = models.CharField(max_length=32)
    run_after = models.DateTimeField()
    exception_class_path = models.TextField()
    traceback = models.TextField()

    class Meta:
        app_label = "django_tasks_database"
