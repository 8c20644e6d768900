"""Arranging finished jobs of an age, with attempts and effects, for the tests of prune."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue_many
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.models import Job
from tests.core.arrange import run

HOUR, DAY = 3600.0, 86_400.0


def old_jobs(
    connection: BaseDatabaseWrapper,
    count: int = 1,
    *,
    status: str = "done",
    days: float = 40,
    job_type: str = "arranged",
    attempts: int = 1,
    **options: Any,
) -> list[int]:
    """Insert jobs that were created and ended so many days ago; return their ids in order."""
    jobs = enqueue_many([(job_type, {"n": n}, options) for n in range(count)])
    ids = [job.id for job in jobs]
    age(connection, ids, days, status=status)
    marks = ", ".join(["%s"] * len(ids))
    for number in range(1, attempts + 1):
        run(
            connection,
            "INSERT INTO leasequeue_jobattempt (job_id, number, token, outcome) "
            f"SELECT id, {number}, %s, 'completed' FROM leasequeue_job WHERE id IN ({marks})",
            [os.urandom(16), *ids],
        )
    run(connection, f"UPDATE leasequeue_job SET claims = {attempts} WHERE id IN ({marks})", ids)
    return ids


def age(
    connection: BaseDatabaseWrapper, ids: list[int], days: float, *, status: str = "done"
) -> None:
    """Let jobs have been created and have ended so many days ago, in that status."""
    dialect = dialect_for(connection)
    marks = ", ".join(["%s"] * len(ids))
    span = dialect.span(-days * DAY)
    run(
        connection,
        f"UPDATE leasequeue_job SET status = %s, created_at = {dialect.later}, "
        f"finished_at = {dialect.later} WHERE id IN ({marks})",
        [status, span, span, *ids],
    )


def left() -> list[int]:
    """Return the ids of the jobs that are in the table, in order."""
    return list(Job.objects.order_by("id").values_list("id", flat=True))


def archived(path: Path) -> list[dict[str, Any]]:
    """Return the records of an archive."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
