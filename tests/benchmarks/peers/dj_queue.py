"""dj-queue: a supervisor with one worker of one thread."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.peers import project

APPS = ("dj_queue",)
setup = project.migrate


def settings() -> dict[str, Any]:
    """Return its settings."""
    worker = {"queues": "*", "threads": 1, "processes": 1, "polling_interval": 0.1}
    backend = {
        "BACKEND": "dj_queue.backend.DjQueueBackend",
        "QUEUES": [],
        "OPTIONS": {"workers": [worker]},
    }
    return {
        "TASKS": {"default": backend},
        "DATABASE_ROUTERS": ["dj_queue.routers.DjQueueRouter"],
    }


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    project.start()
    from tests.benchmarks.peers import tasks

    tasks.enqueue(count, kind)


def work() -> None:
    """Run its supervisor."""
    project.command("dj_queue", "--skip-recurring")


def done() -> int:
    """Count what has finished."""
    project.start()
    from dj_queue.models import Job

    return int(Job.objects.filter(finished_at__isnull=False).count())
