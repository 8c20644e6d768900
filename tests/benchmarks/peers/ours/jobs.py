"""The peers' work as job types."""

from __future__ import annotations

from django_leasequeue import JobContext, job
from tests.benchmarks.peers.marks import mark
from tests.benchmarks.work.models import Effect


@job("peers.noop")
def noop(n: int) -> None:
    mark()


@job("peers.effect", takes_context=True)
def effect(context: JobContext, n: int) -> None:
    with context.complete():
        Effect.objects.create(job_id=n)
    mark()
