"""django-tasks-db: `db_worker`."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.peers import project

APPS = ("django_tasks_db",)
setup = project.migrate


def settings() -> dict[str, Any]:
    """Return its settings."""
    return {"TASKS": {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}}


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    project.start()
    from tests.benchmarks.peers import tasks

    tasks.enqueue(count, kind)


def work() -> None:
    """Run its worker."""
    project.command("db_worker", "--no-startup-delay", "--queue-name", "*", "--no-reload")


def done() -> int:
    """Count what succeeded."""
    project.start()
    from django_tasks_db.models import DBTaskResult

    return int(DBTaskResult.objects.successful().count())
