"""Arranging very many dead letters, in one statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_leasequeue.core.bulk_chunk import Chunk
from django_leasequeue.core.bulk_drive import Told
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import Job


def bury(count: int = 1, job_type: str = "arranged", **columns: Any) -> list[int]:
    """Put in `count` jobs that died just now, and return their ids."""
    columns = {"status": "dead", "attempts": 5, "finished_at": UtcNow(), **columns}
    before = Job.objects.order_by("pk").last()
    Job.objects.bulk_create(
        [Job(job_type=job_type, **columns) for _ in range(count)], batch_size=500
    )
    added = Job.objects.filter(pk__gt=before.pk if before else 0)
    return list(added.order_by("pk").values_list("pk", flat=True))


def statuses(ids: list[int]) -> list[str]:
    """Return the jobs' statuses in the order of their ids."""
    found: dict[int, str] = {}
    for start in range(0, len(ids), 500):
        jobs = Job.objects.filter(pk__in=ids[start : start + 500])
        found |= dict(jobs.values_list("pk", "status"))
    return [found[job_id] for job_id in ids]


def after_chunk(number: int, act: Callable[[], object]) -> Told:
    """Return what does `act` once, after the run's `number`-th chunk."""
    heard: list[Chunk] = []

    def told(chunk: Chunk) -> None:
        heard.append(chunk)
        if len(heard) == number:
            act()

    return told
