"""Arranging jobs for a test, and looking at rows as they are."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue
from django_leasequeue.core.claim import ClaimSettings, claim
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lanes import Lanes, parse_queues
from django_leasequeue.core.lease import Claimed
from django_leasequeue.models import Job, JobAttempt

WORKER = "tester:host:1:00"
TABLES = ("leasequeue_job", "leasequeue_jobattempt", "leasequeue_jobeffect", "leasequeue_queue")


def claim_jobs(
    connection: BaseDatabaseWrapper,
    limit: int = 1,
    *,
    ahead: int = 0,
    queues: str = "*",
    lanes: Lanes | None = None,
    lease: float = 60,
    leases: dict[str, float] | None = None,
    worker: str = WORKER,
) -> list[Claimed]:
    """Claim as a worker does that has just started, or that has these `lanes`."""
    settings = ClaimSettings(worker, lease, leases or {})
    return claim(connection, lanes or Lanes(parse_queues(queues)), limit, settings, ahead=ahead)


def claim_one(connection: BaseDatabaseWrapper, **options: Any) -> Claimed:
    """Claim the one job that is due."""
    (job,) = claim_jobs(connection, 1, **options)
    return job


def running(connection: BaseDatabaseWrapper, count: int = 1, **options: Any) -> list[Claimed]:
    """Enqueue `count` jobs with these options and claim them."""
    options.setdefault("queue", "default")
    ids = [enqueue("arranged", {"n": n}, **options).id for n in range(count)]
    jobs = claim_jobs(connection, count, queues=options["queue"])
    assert sorted(job.job_id for job in jobs) == sorted(ids)
    return jobs


def run(connection: BaseDatabaseWrapper, sql: str, params: Any = ()) -> None:
    """Run one statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def write(connection: BaseDatabaseWrapper, job_id: int, **columns: Any) -> None:
    """Write columns of a job's row behind the queue's back."""
    changes = ", ".join(f"{name} = %s" for name in columns)
    run(
        connection,
        f"UPDATE leasequeue_job SET {changes} WHERE id = %s",
        [*columns.values(), job_id],
    )


def shift(connection: BaseDatabaseWrapper, job_id: int, column: str, seconds: float) -> None:
    """Set a time of a job's row to `seconds` from now by the database's clock."""
    dialect = dialect_for(connection)
    run(
        connection,
        f"UPDATE leasequeue_job SET {column} = {dialect.later} WHERE id = %s",
        [dialect.span(seconds), job_id],
    )


def expire(connection: BaseDatabaseWrapper, *job_ids: int) -> None:
    """Let the leases of running jobs have run out a second ago."""
    for job_id in job_ids:
        shift(connection, job_id, "lease_until", -1)


def snapshot(connection: BaseDatabaseWrapper) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of the queue's tables, whole, to be compared with a later one."""
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id")
            found[table] = [tuple(map(_plain, row)) for row in cursor.fetchall()]
    return found


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def job(job_id: int) -> Job:
    """Return a job's row as it is now."""
    return Job.objects.get(pk=job_id)


def history(job_id: int) -> list[JobAttempt]:
    """Return a job's attempts in order."""
    return list(JobAttempt.objects.filter(job_id=job_id).order_by("number"))


def outcomes(job_id: int) -> list[str]:
    """Return the words that a job's attempts ended with."""
    return [attempt.outcome for attempt in history(job_id)]
