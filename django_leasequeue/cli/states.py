"""The words for a job's state, as filters and as what a list shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django_leasequeue.models import Job
from django_leasequeue.querysets import JobQuerySet
from django_leasequeue.statuses import Status

__all__ = ["STATES", "state_of"]

STATES: dict[str, Callable[[JobQuerySet], JobQuerySet]] = {
    "ready": JobQuerySet.due,
    "scheduled": JobQuerySet.scheduled,
    "retrying": JobQuerySet.retrying,
    "reserved": JobQuerySet.reserved,
    "expired": JobQuerySet.expired,
    "parked": lambda jobs: jobs.filter(status=Status.PARKED),
    "done": lambda jobs: jobs.filter(status=Status.DONE),
    "dead": JobQuerySet.dead,
    "cancelled": lambda jobs: jobs.filter(status=Status.CANCELLED),
}


def state_of(job: Job, now: datetime) -> str:
    """Return the word for a job's state as of `now`, the database's time."""
    if job.status == Status.READY and job.available_at and job.available_at > now:
        return "retrying" if job.attempts else "scheduled"
    if job.status == Status.RESERVED and job.lease_until is not None and job.lease_until <= now:
        return "expired"
    return str(job.status)
