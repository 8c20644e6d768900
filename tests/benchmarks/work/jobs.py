"""The job types: nothing, one row in three ways, five milliseconds, the time of day."""

from __future__ import annotations

import time

from django.db import connection

from django_leasequeue import JobContext, job
from tests.benchmarks.work.models import Effect

#: Where one transaction at a time may write, an atomic handler must end before its lease.
_LIMIT = 30 if connection.vendor == "sqlite" else None


@job("bench.noop")
def noop(n: int) -> None:
    return None


@job("bench.complete", takes_context=True)
def complete(context: JobContext, n: int) -> None:
    with context.complete():
        Effect.objects.create(job_id=context.job_id)


@job("bench.atomic", takes_context=True, atomic=True, timeout=_LIMIT)
def atomic(context: JobContext, n: int) -> None:
    Effect.objects.create(job_id=context.job_id)


@job("bench.sleep")
def sleep(n: int) -> None:
    time.sleep(0.005)


@job("bench.clock")
def clock(n: int) -> float:
    return time.time()
