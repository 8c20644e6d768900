"""Inserting one job, and finding the job that has its key.

A duplicate never locks the job's row (an upsert would hold it until the caller commits and starve
the running job's renewal): plain INSERT and a share lock on the key's index entry on MySQL and
MariaDB, ON CONFLICT DO NOTHING elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.request import Identity, Request
from django_leasequeue.core.transaction import in_transaction, tagged

__all__ = [
    "COLUMNS",
    "INDEX_OF",
    "committed_row",
    "has_key_now",
    "insert_one",
    "looks_first",
    "moment_sql",
    "reads_snapshot",
    "values_row",
]

COLUMNS = (
    "queue_name, job_type, payload, idempotency_key, live_key, key_hash, priority, max_attempts, "
    "max_crashes, timeout, payload_version, context, signature, available_at, expires_at"
)

INDEX_OF = {"idempotency_key": "leasequeue_job_key", "live_key": "leasequeue_job_live"}


def moment_sql(
    dialect: Dialect, value: datetime | float | None, absent: str
) -> tuple[str, list[Any]]:
    """Return the SQL and parameters of a moment: a datetime, seconds from now, or `absent`."""
    if value is None:
        return absent, []
    if isinstance(value, datetime):
        return "%s", [dialect.time_param(value)]
    return dialect.later, [dialect.span(value)]


def values_row(dialect: Dialect, request: Request) -> tuple[str, list[Any]]:
    """Return the VALUES row of a request: its SQL shape and its parameters."""
    available, available_params = moment_sql(dialect, request.available, dialect.stamp)
    expires, expires_params = moment_sql(dialect, request.expires, "NULL")
    shape = (
        f"(%s, %s, {dialect.json_param}, %s, %s, %s, %s, %s, %s, %s, "
        f"%s, {dialect.json_param}, %s, {available}, {expires})"
    )
    return shape, [
        request.queue,
        request.job_type,
        request.payload,
        request.idempotency_key,
        request.live_key,
        request.live_key,
        request.priority,
        request.max_attempts,
        request.max_crashes,
        request.timeout,
        request.payload_version,
        request.context,
        request.signature,
        *available_params,
        *expires_params,
    ]


def _origin(dialect: Dialect, request: Request) -> tuple[str, str, list[Any]]:
    """Return the columns, the SQL and the parameters that only a schedule's job has."""
    if not request.schedule:
        return "", "", []
    tick, params = moment_sql(dialect, request.tick_at, "NULL")
    return ", schedule, tick_at", f", %s, {tick}", [request.schedule, *params]


def insert_one(connection: BaseDatabaseWrapper, request: Request) -> tuple[int, bool]:
    """Insert one job; return its id and True, or the id of the job that has its key and False."""
    connection.ensure_connection()
    dialect = dialect_for(connection)
    shape, params = values_row(dialect, request)
    columns, values, origin = _origin(dialect, request)
    insert = f"INSERT INTO leasequeue_job ({COLUMNS}{columns}) VALUES {shape[:-1]}{values})"
    params += origin
    with connection.cursor() as cursor:
        # A duplicate that InnoDB meets at an INSERT is locked until the caller commits, and so is
        # the gap before it, where other producers insert: only a race may get that far.
        looks = looks_first(connection, request)
        if looks and (job_id := _seen_holder(connection, cursor, request)) is not None:
            return job_id, False
        while True:
            if dialect.on_conflict:
                sql = f"{insert} ON CONFLICT DO NOTHING RETURNING id"
                cursor.execute(tagged("enqueue", sql), params)
                if row := cursor.fetchone():
                    return row[0], True
            else:
                try:
                    cursor.execute(tagged("enqueue", insert), params)
                    return cursor.lastrowid, True
                except IntegrityError as error:
                    if not dialect.is_duplicate(error):
                        raise
            for identity in request.identities:
                job_id = _holder(dialect, cursor, identity, dialect.share_lock)
                if job_id is not None:
                    return job_id, False
            # The job that had the key was removed in between: the key is free again.


def looks_first(connection: BaseDatabaseWrapper, request: Request) -> bool:
    """Tell whether the key is looked for before an INSERT tries it.

    Under a snapshot ON CONFLICT fails (40001) when the job that has the key changed since.
    """
    if not request.keyed:
        return False
    on_conflict = dialect_for(connection).on_conflict
    return not on_conflict or (not request.live_key and reads_snapshot(connection))


def _seen_holder(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, request: Request
) -> int | None:
    """Return the id of a job that has the request's key, as far as it is seen without a lock.

    A snapshot may still show a job as live that has finished since: the new job would be lost. A
    key that lasts forever cannot mislead.
    """
    job_id = _holder(dialect_for(connection), cursor, request.identity)
    if job_id is None or not request.live_key or not reads_snapshot(connection):
        return job_id
    return job_id if has_key_now(connection, job_id, request.live_key) else None


def has_key_now(connection: BaseDatabaseWrapper, job_id: int, live_key: str) -> bool:
    """Tell what is true at this moment of a job that was found by its key."""
    row = committed_row(connection, "SELECT live_key FROM leasequeue_job WHERE id = %s", [job_id])
    # A job that nobody else sees is this transaction's own.
    return row is None or row[0] == live_key


def committed_row(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> Any:
    """Return a row as it is at this moment, whatever the caller's transaction shows.

    Beside a snapshot it is asked by a connection of its own: a locking read would see it too, but
    InnoDB locks the gap before the entry with it, where others insert, and the entry, which the
    job's end has to change.
    """
    snapshot = reads_snapshot(connection)
    asked = connection.copy() if snapshot else connection
    try:
        with asked.cursor() as cursor:
            cursor.execute(tagged("enqueue", sql), params)
            return cursor.fetchone()
    finally:
        if snapshot:
            asked.close()


def reads_snapshot(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether plain reads here may show a state that is past."""
    return in_transaction(connection) and dialect_for(connection).keeps_snapshot(connection)


def _holder(
    dialect: Dialect, cursor: CursorWrapper, identity: Identity, lock: str = ""
) -> int | None:
    """Return the id of the job that has the key.

    Without a `lock` a job that was committed after this transaction's snapshot is not seen. With
    one it is; the read is of the index alone, so the job's row stays free.
    """
    queue, column, digest = identity
    cursor.execute(
        tagged(
            "enqueue",
            f"SELECT id FROM leasequeue_job{dialect.hint(INDEX_OF[column])} "
            f"WHERE {dialect.aside('queue_name')} = %s AND {column} = %s{lock}",
        ),
        [queue, digest],
    )
    row = cursor.fetchone()
    return row[0] if row else None
