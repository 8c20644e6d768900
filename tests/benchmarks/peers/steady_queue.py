"""steady-queue: a supervisor with one worker of one thread."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.peers import project

APPS = ("django.contrib.contenttypes", "steady_queue")
setup = project.migrate


def settings() -> dict[str, Any]:
    """Return its settings."""
    from datetime import timedelta

    from steady_queue.configuration import Configuration

    worker = Configuration.Worker(queues=["*"], threads=1, polling_interval=timedelta(seconds=0.1))
    return {
        "TASKS": {
            "default": {"BACKEND": "steady_queue.backend.SteadyQueueBackend", "QUEUES": ["default"]}
        },
        "STEADY_QUEUE": Configuration.Options(workers=[worker], recurring_tasks=[]),
    }


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    project.start()
    from tests.benchmarks.peers import tasks

    tasks.enqueue(count, kind)


def work() -> None:
    """Run its supervisor."""
    project.command("steady_queue")


def done() -> int:
    """Count what has finished."""
    project.start()
    from steady_queue.models import Job

    return int(Job.objects.filter(finished_at__isnull=False).count())
