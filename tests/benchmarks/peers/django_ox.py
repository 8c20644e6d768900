"""django-ox: `ox_worker`, one at a time."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.peers import project

APPS = ("django_ox",)
setup = project.migrate


def settings() -> dict[str, Any]:
    """Return its settings."""
    return {"TASKS": {"default": {"BACKEND": "django_ox.backend.OxBackend"}}}


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    project.start()
    from tests.benchmarks.peers import tasks

    tasks.enqueue(count, kind)


def work() -> None:
    """Run its worker."""
    project.command("ox_worker", "--concurrency", "1")


def done() -> int:
    """Count what succeeded."""
    project.start()
    from django_ox.models import OxTask

    return int(OxTask.objects.filter(status="SUCCESSFUL").count())
