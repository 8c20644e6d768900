"""A change and its LogEntry: both are committed, or neither is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connections, transaction

from django_leasequeue.conf import get_conf
from django_leasequeue.core.transaction import repeat
from django_leasequeue.models import Job

__all__ = ["held", "in_one"]

T = TypeVar("T")

_TRIES_FOR_LOCKED = 5


def in_one(work: Callable[[], T]) -> T:
    """Run `work` in one transaction of the queue's database and return what it returned.

    Deadlocks, lock waits and lost connections roll it back and repeat it, bounded. Where the log
    is in another database, its entry is written just before this one commits.
    """
    connection = connections[get_conf().DATABASE]

    def once() -> T:
        with transaction.atomic(using=connection.alias):
            return work()

    return repeat(connection, once)


def held(job_id: int, *fields: str) -> Job | None:
    """Lock a job's row until the caller's transaction ends; return it with these fields alone.

    A lock that a worker has for a moment is waited for; None when somebody keeps it, or the job
    is gone. SQLite has no such locks: there a write after this fails, and `in_one` looks anew, if
    the row changed in between.
    """
    jobs = Job.objects.using(get_conf().DATABASE).select_for_update(skip_locked=True)
    for tried in range(1, _TRIES_FOR_LOCKED + 1):
        if job := jobs.filter(pk=job_id).only(*fields).first():
            return job
        time.sleep(0.02 * tried)
    return None
