"""django-q2 with its ORM broker: a cluster of one worker."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.peers import project

APPS = ("django.contrib.contenttypes", "django.contrib.auth", "django_q")
setup = project.migrate


def settings() -> dict[str, Any]:
    """Return its settings; every result is kept, as the others do."""
    cluster = {
        "name": "bench",
        "orm": "default",
        "workers": 1,
        "timeout": 60,
        "retry": 120,
        "save_limit": 0,
        "bulk": 10,
        "poll": 0.1,
        "catch_up": False,
        "ack_failures": True,
    }
    return {"Q_CLUSTER": cluster}


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    with project.in_transaction():
        from django_q.tasks import async_task

        for n in range(count):
            async_task(f"tests.benchmarks.peers.project.{kind}", n)


def work() -> None:
    """Run its cluster."""
    project.command("qcluster")


def done() -> int:
    """Count what succeeded."""
    project.start()
    from django_q.models import Success

    return int(Success.objects.count())
