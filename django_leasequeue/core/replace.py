"""Replacing: a ready job becomes what a new request for its key says.

Only a ready job is ever locked: the lock lasts until the caller commits, and a running job must be
renewed meanwhile.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.insert import committed_row, moment_sql
from django_leasequeue.core.request import Request
from django_leasequeue.core.sealing import signed_for
from django_leasequeue.core.transaction import in_transaction, tagged

__all__ = ["replace_ready"]

_TRIES = 5


class _Row(NamedTuple):
    """A job as it is now."""

    status: str
    idempotency_key: str


def replace_ready(connection: BaseDatabaseWrapper, request: Request, job_id: int) -> bool:
    """Make a ready job what the request says; return False when it is not, or stays locked.

    Nothing of earlier attempts at the old payload counts: neither counters nor checkpoint. In the
    caller's transaction the job is locked from here on. Waits for no lock there, and holds none
    of a job that is not ready.
    """
    if not in_transaction(connection):
        return _write_if_ready(connection, request, job_id, _read(connection, job_id))
    for tried in range(1, _TRIES + 1):
        # InnoDB locks whatever row a locking read comes across under REPEATABLE READ, ready or
        # not. One that waited would come across the job that a claim has just reserved.
        if not _is_ready_now(connection, job_id):
            return False
        row = _read(connection, job_id, dialect_for(connection).skip_locked)
        if _write_if_ready(connection, request, job_id, row):
            return True
        time.sleep(0.02 * tried)
    return False


def _write_if_ready(
    connection: BaseDatabaseWrapper, request: Request, job_id: int, row: _Row | None
) -> bool:
    if row is None or row.status != "ready":
        return False
    return _write(connection, signed_for(request, row.idempotency_key), job_id)


def _is_ready_now(connection: BaseDatabaseWrapper, job_id: int) -> bool:
    """Tell whether a job is ready at this moment, whatever a snapshot shows."""
    row = committed_row(connection, "SELECT status FROM leasequeue_job WHERE id = %s", [job_id])
    # A job that nobody else sees is this transaction's own.
    return row is None or row[0] == "ready"


def _read(connection: BaseDatabaseWrapper, job_id: int, lock: str = "") -> _Row | None:
    """Return what decides of a job; under a `lock` of a ready one only."""
    dialect = dialect_for(connection)
    ready = f" AND {dialect.aside('status')} = 'ready'" if lock else ""
    with connection.cursor() as cursor:
        cursor.execute(
            tagged(
                "replace",
                f"SELECT status, idempotency_key FROM leasequeue_job{dialect.hint('PRIMARY')} "
                f"WHERE id = %s{ready}{lock}",
            ),
            [job_id],
        )
        row = cursor.fetchone()
    return _Row(*row) if row else None


def _write(connection: BaseDatabaseWrapper, request: Request, job_id: int) -> bool:
    dialect = dialect_for(connection)
    available, available_params = moment_sql(dialect, request.available, dialect.stamp)
    expires, expires_params = moment_sql(dialect, request.expires, "NULL")
    with connection.cursor() as cursor:
        cursor.execute(
            tagged(
                "replace",
                # Without the hint a small table is read, and locked, through another index.
                f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET "
                f"job_type = %s, payload = {dialect.json_param}, "
                f"priority = %s, max_attempts = %s, max_crashes = %s, timeout = %s, "
                "attempts = 0, crashes = 0, releases = 0, last_error = '', fingerprint = '', "
                "checkpoint = NULL, progress = NULL, "
                f"payload_version = %s, context = {dialect.json_param}, signature = %s, "
                f"available_at = {available}, expires_at = {expires}, "
                f"updated_at = {dialect.stamp} WHERE id = %s "
                f"AND {dialect.aside('status')} = 'ready'",
            ),
            [
                request.job_type,
                request.payload,
                request.priority,
                request.max_attempts,
                request.max_crashes,
                request.timeout,
                request.payload_version,
                request.context,
                request.signature,
                *available_params,
                *expires_params,
                job_id,
            ],
        )
        return bool(cursor.rowcount)
