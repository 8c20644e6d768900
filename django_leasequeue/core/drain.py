"""Drain: what is still to be waited for before a draining worker may end."""

from __future__ import annotations

from collections.abc import Collection

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lanes import ALL_QUEUES
from django_leasequeue.core.transaction import ask, marks, tagged

__all__ = ["anything_reserved", "waiting_retries"]


def anything_reserved(connection: BaseDatabaseWrapper, queues: tuple[str, ...]) -> bool:
    """Tell whether any worker holds a job of these queues."""
    dialect = dialect_for(connection)
    named = () if queues == (ALL_QUEUES,) else queues
    condition = f" AND queue_name IN ({marks(named)})" if named else ""
    sql = (
        f"SELECT 1 FROM leasequeue_job{dialect.hint('leasequeue_job_recover')} "
        f"WHERE status = 'reserved' AND lease_until IS NOT NULL{condition} LIMIT 1"
    )
    return bool(ask(connection, tagged("drain", sql), list(named)))


def waiting_retries(
    connection: BaseDatabaseWrapper, job_ids: Collection[int], within: float
) -> set[int]:
    """Return which of `job_ids` wait for a retry that is due within `within` seconds."""
    if not job_ids:
        return set()
    dialect = dialect_for(connection)
    ids = sorted(job_ids)
    sql = (
        f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} WHERE id IN ({marks(ids)}) "
        f"AND {dialect.aside('status')} = 'ready' "
        f"AND {dialect.aside('available_at')} <= {dialect.later}"
    )
    rows = ask(connection, tagged("drain", sql), [*ids, dialect.span(within)])
    return {row[0] for row in rows}
