"""The one place that imports the tasks framework: Django's own, else the backport."""

from __future__ import annotations

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

__all__ = [
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "normalize_json",
    "task",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]

if not apps.is_installed("django_leasequeue"):
    # Said here, before the models are imported: Django's own error would name one of them.
    raise ImproperlyConfigured(
        "TASKS names the backend of django_leasequeue: add 'django_leasequeue' to INSTALLED_APPS "
        "and run migrate."
    )

try:
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import (
        Task,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
        task,
    )
    from django.tasks.exceptions import (
        InvalidTask,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
except ImportError:
    try:
        from django_tasks import (  # type: ignore[no-redef,import-not-found,unused-ignore]
            task_backends,
        )
        from django_tasks.backends.base import (  # type: ignore[no-redef,import-not-found,unused-ignore]
            BaseTaskBackend,
        )
        from django_tasks.base import (  # type: ignore[no-redef,import-not-found,unused-ignore]
            Task,
            TaskContext,
            TaskError,
            TaskResult,
            TaskResultStatus,
            task,
        )
        from django_tasks.exceptions import (  # type: ignore[no-redef,import-not-found,unused-ignore]
            InvalidTaskError as InvalidTask,
        )
        from django_tasks.exceptions import (  # type: ignore[no-redef,unused-ignore]
            TaskResultDoesNotExist,
            TaskResultMismatch,
        )
        from django_tasks.signals import (  # type: ignore[no-redef,import-not-found,unused-ignore]
            task_enqueued,
            task_finished,
            task_started,
        )
        from django_tasks.utils import (  # type: ignore[no-redef,import-not-found,unused-ignore]
            normalize_json,
        )
    except ImportError as error:
        raise ImproperlyConfigured(
            "django.tasks came with Django 6.0. For this Django install the extra "
            "'django-leasequeue[tasks]' and add 'django_tasks' to INSTALLED_APPS."
        ) from error
