"""The checkpoint: what an attempt leaves for the next one, written under the lease."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import Lease, fence
from django_leasequeue.core.transaction import tagged
from django_leasequeue.exceptions import LeaseLost

__all__ = ["save_checkpoint"]


def save_checkpoint(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, lease: Lease, text: str, seconds: float
) -> None:
    """Store JSON text as a held job's checkpoint and prolong its lease to `seconds` from now.

    One statement: inside the caller's transaction it stands or falls with it, in autocommit it is
    committed. The job's later attempts find it, also after a requeue. Raises LeaseLost, and
    has written nothing, when the lease is not held any more.
    """
    dialect = dialect_for(connection)
    held, tokens = fence(dialect, [lease])
    cursor.execute(
        tagged(
            "checkpoint",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} "
            f"SET checkpoint = {dialect.json_param}, lease_until = {dialect.later}, "
            f"updated_at = {dialect.stamp} WHERE id = %s AND {held}",
        ),
        [text, dialect.span(seconds), lease.job_id, *tokens],
    )
    if cursor.rowcount != 1:
        raise LeaseLost(f"job {lease.job_id}: the lease was lost before its checkpoint")
