"""How an operator's operations change jobs whose rows are locked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.attempts import record
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import Lease
from django_leasequeue.core.operating import Ids, Row, update_jobs
from django_leasequeue.core.payloads import Columns
from django_leasequeue.outcomes import End
from django_leasequeue.statuses import Status, sources_of

__all__ = ["REQUEUED", "cancel_rows", "requeue_rows"]

REQUEUED = (Status.DEAD, Status.CANCELLED)
_AS_IT_IS = Columns()


def cancel_rows(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    rows: Sequence[Row],
    *,
    columns: Columns = _AS_IT_IS,
) -> Ids:
    """Cancel jobs that are locked, and end their attempts; return their ids."""
    running = [
        Lease(row.id, bytes(row.token))
        for row in rows
        if row.status == Status.RESERVED and row.token is not None
    ]
    if running:
        record(connection, cursor, running, End.CANCELLED, text="Cancelled while it ran")
    ids = [row.id for row in rows]
    change = (
        "status = 'cancelled', live_key = NULL, lease_token = NULL, lease_until = NULL, "
        f"finished_at = {dialect_for(connection).stamp}{columns.change}"
    )
    update_jobs(connection, cursor, ids, change, columns.params, sources_of(Status.CANCELLED))
    return ids


def requeue_rows(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    rows: Sequence[Row],
    *,
    columns: Columns = _AS_IT_IS,
    spread: float = 0,
) -> Ids:
    """Make jobs that are locked ready, somewhere in the next `spread` seconds; return their ids.

    Left out are those whose key a live job has.
    """
    dialect = dialect_for(connection)
    stamp = dialect.stamp
    params = [*([dialect.span(spread)] if spread else []), *columns.params]
    change = (
        f"status = 'ready', available_at = {dialect.scattered if spread else stamp}, "
        "attempts = 0, crashes = 0, releases = 0, bury_tries = 0, "
        "lease_token = NULL, lease_until = NULL, finished_at = NULL, "
        # An expiry that is past would cancel the job again at its next claim.
        f"expires_at = CASE WHEN expires_at <= {stamp} THEN NULL ELSE expires_at END"
        f"{columns.change}"
    )
    plain = [row.id for row in rows if row.key_hash is None]
    update_jobs(connection, cursor, plain, change, params, REQUEUED)
    keyed = [row.id for row in rows if row.key_hash is not None]
    return plain + [one for one in keyed if _win_back(connection, cursor, one, change, params)]


def _win_back(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    job_id: int,
    change: str,
    params: Sequence[Any],
) -> bool:
    """Requeue one job together with its key; False when a live job has the key."""
    cursor.execute("SAVEPOINT leasequeue_key")
    try:
        with_key = f"live_key = key_hash, {change}"
        update_jobs(connection, cursor, [job_id], with_key, params, REQUEUED)
    except IntegrityError as error:
        if not dialect_for(connection).is_duplicate(error):
            raise
        cursor.execute("ROLLBACK TO SAVEPOINT leasequeue_key")
        return False
    cursor.execute("RELEASE SAVEPOINT leasequeue_key")
    return True
