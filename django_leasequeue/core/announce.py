"""Announcing jobs to the project, right after their insert and in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import Error, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.transaction import in_transaction
from django_leasequeue.models import Job
from django_leasequeue.signals import job_enqueued

__all__ = ["announce"]

_ENDED = OperationalError("a receiver of job_enqueued has ended the caller's transaction")


def announce(connection: BaseDatabaseWrapper, jobs: Sequence[Job]) -> None:
    """Send `job_enqueued` for each job.

    Inside the caller's transaction receivers have a savepoint: when one of them raises, or leaves
    a database error behind that it has swallowed, what receivers wrote is undone, and transaction
    and job are as good as before. Raises the database's error when a receiver has ended the whole
    transaction (a deadlock), and the job with it. Without receivers nothing is done.
    """
    if not job_enqueued.receivers:
        return
    if not in_transaction(connection):
        _tell(jobs)
        return
    errors: list[BaseException] = []
    try:
        with transaction.atomic(using=connection.alias):
            errors += _tell(jobs)
            if errors:
                transaction.set_rollback(True, using=connection.alias)
    except Error as error:
        # The savepoint could not be released: there was an error that nobody told of.
        errors.append(error)
    if connection.needs_rollback:
        # Nor was there a savepoint to go back to: silence would lose the job.
        raise next((each for each in errors if isinstance(each, Error)), _ENDED)


def _tell(jobs: Sequence[Job]) -> list[BaseException]:
    return [error for job in jobs for error in job_enqueued.tell(Job, job=job, created=job.created)]
