"""Announcing jobs to the project, right after their insert and in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DatabaseError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.transaction import in_transaction
from django_leasequeue.models import Job
from django_leasequeue.signals import job_enqueued

__all__ = ["announce"]


def announce(connection: BaseDatabaseWrapper, jobs: Sequence[Job]) -> None:
    """Send `job_enqueued` for each job.

    Inside the caller's transaction receivers have a savepoint: when one of them meets a database
    error, what receivers wrote is undone, and the transaction and the job are as good as before.
    Without receivers nothing is done.
    """
    if not job_enqueued.receivers:
        return
    if not in_transaction(connection):
        _tell(jobs)
        return
    with transaction.atomic(using=connection.alias):
        if any(isinstance(error, DatabaseError) for error in _tell(jobs)):
            transaction.set_rollback(True, using=connection.alias)


def _tell(jobs: Sequence[Job]) -> list[BaseException]:
    return [error for job in jobs for error in job_enqueued.tell(Job, job=job, created=job.created)]
