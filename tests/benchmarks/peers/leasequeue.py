"""This queue, measured as its peers are: by the bytes that its jobs leave."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.peers import project

APPS = ("django_leasequeue", "tests.benchmarks.peers.ours")
setup = project.migrate


def settings() -> dict[str, Any]:
    """Return its settings: none."""
    return {}


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    with project.in_transaction():
        from django_leasequeue import enqueue_many

        enqueue_many([(f"peers.{kind}", {"n": n}, {}) for n in range(count)])


def work(option: str = "") -> None:
    """Run a worker with one child, or without one."""
    project.command("runworker", *(["--solo"] if option == "solo" else ["--processes", "1"]))


def done() -> int:
    """Count the jobs that are done and have their attempt row."""
    project.start()
    from django_leasequeue.models import Job, JobAttempt

    return min(Job.objects.filter(status="done").count(), JobAttempt.objects.count())
