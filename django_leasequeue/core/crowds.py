"""Which jobs of a queue and a type to look through: no index holds both, and either may be many."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["newest_begin"]


def newest_begin(
    connection: BaseDatabaseWrapper, queue: str, job_type: str, statuses: Sequence[str], most: int
) -> dict[str, int] | None:
    """Return with which id the `most` newest jobs of the type begin, by status.

    A status that has no more of them is left out. None: the queue itself has no more than `most`,
    so that all of its jobs can be looked through. One statement, which reads index entries alone;
    raises the database's errors.
    """
    dialect = dialect_for(connection)
    in_queue = (
        f"(SELECT 1 FROM leasequeue_job{dialect.hint('leasequeue_job_claim')} "
        "WHERE queue_name = %s ORDER BY status, priority, available_at, id "
        f"LIMIT 1 OFFSET {most:d})"
    )
    of_type = (
        f"(SELECT id FROM leasequeue_job{dialect.hint('leasequeue_job_type')} "
        f"WHERE status = %s AND job_type = %s ORDER BY id DESC LIMIT 1 OFFSET {most - 1:d})"
    )
    sql = f"SELECT {', '.join([in_queue, *[of_type] * len(statuses)])}"
    params = [queue, *(param for status in statuses for param in (status, job_type))]
    ((too_many, *begins),) = ask(connection, tagged("crowds", sql), params)
    if too_many is None:
        return None
    found = zip(statuses, begins, strict=True)
    return {status: job_id for status, job_id in found if job_id is not None}
