"""Enqueue: one INSERT in the caller's transaction; a taken key returns the job that has it.

A duplicate never locks the job's row (an upsert would hold it until the caller commits and starve
the running job's renewal): on MySQL and MariaDB a key is looked for without a lock and then
inserted plainly, elsewhere it is ON CONFLICT DO NOTHING.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from asgiref.sync import sync_to_async
from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.request import (
    Column,
    Identity,
    Options,
    OptionsUsing,
    Request,
    build_request,
)
from django_leasequeue.core.transaction import (
    CommitUnknown,
    in_transaction,
    marks,
    repeat,
    run,
    tagged,
)
from django_leasequeue.exceptions import EnqueueError, KeyTaken
from django_leasequeue.models import Job
from django_leasequeue.registry import Declaration

__all__ = ["aenqueue", "aenqueue_many", "enqueue", "enqueue_many"]

_COLUMNS = (
    "queue_name, job_type, payload, idempotency_key, live_key, key_hash, priority, max_attempts, "
    "max_crashes, timeout, available_at, expires_at"
)

_INDEX_OF = {"idempotency_key": "leasequeue_job_key", "live_key": "leasequeue_job_live"}


def enqueue(
    job_type: str | Declaration,
    payload: Mapping[str, Any] | None = None,
    *,
    using: str | None = None,
    **options: Unpack[Options],
) -> Job:
    """Enqueue a job and return it.

    Options: `queue`, `key`, `key_until` ("forever" or "finished"), `on_conflict` ("return",
    "replace" or "raise"), `priority` (-100 to 100, larger first), `delay` (seconds or timedelta)
    or `run_after` (datetime), `expires` (seconds, timedelta or datetime: cancelled instead of
    claimed after that, a retry as well), `max_attempts`, `timeout` (seconds one attempt may run),
    `using` (database alias).

    The job commits with the caller's transaction, or not at all. When `key` is taken the job that
    has it is returned with `created` False: unchanged ("return"), with this payload, priority,
    times and limits if it is still ready ("replace"); "raise" raises KeyTaken. A key that another
    open transaction has just inserted makes the caller wait for that transaction. Raises
    EnqueueError, before anything is written, for whatever cannot be queued.
    """
    request = _request((job_type, payload, options))
    connection = connections[using or get_conf().DATABASE]
    job_id, created = repeat(connection, lambda: _insert(connection, request))
    if not created and request.keyed and not _settle_conflict(connection, request, job_id):
        # The job that had the key ended meanwhile, and with it what there was to replace.
        job_id, created = repeat(connection, lambda: _insert(connection, request))
    return _as_job(connection, request, job_id, created or not request.keyed)


def enqueue_many(
    jobs: Iterable[tuple[str | Declaration, Mapping[str, Any] | None, Mapping[str, Any]]],
    *,
    using: str | None = None,
    batch_size: int = 1000,
) -> list[Job]:
    """Enqueue `(job_type, payload, options)` tuples and return the jobs in the same order.

    All are written or none is: in the caller's transaction, else in one of their own. Options and
    errors are those of `enqueue`; all jobs are checked before the first is written. `on_conflict`
    can only be "return" here. `batch_size` is rows per statement.
    """
    requests = [_request(job) for job in jobs]
    if any(request.on_conflict != "return" for request in requests):
        raise EnqueueError("on_conflict works on one job at a time: use enqueue")
    if batch_size < 1:
        raise EnqueueError("batch_size is at least 1")
    if not requests:
        return []
    connection = connections[using or get_conf().DATABASE]

    def work(cursor: CursorWrapper) -> dict[Identity, tuple[int, bool]]:
        found: dict[Identity, tuple[int, bool]] = {}
        distinct: dict[Identity, Request] = {}
        for request in requests:
            distinct.setdefault(request.identity, request)
        for shape in _by_shape(connection, distinct.values()):
            for start in range(0, len(shape), batch_size):
                _insert_batch(connection, cursor, shape[start : start + batch_size], found)
        return found

    found = _in_one_transaction(connection, work)
    return _as_jobs(connection, requests, found)


async def aenqueue(
    job_type: str | Declaration,
    payload: Mapping[str, Any] | None = None,
    **options: Unpack[OptionsUsing],
) -> Job:
    """Do what `enqueue` does, from a coroutine."""
    return await sync_to_async(enqueue)(job_type, payload, **options)


async def aenqueue_many(
    jobs: Iterable[tuple[str | Declaration, Mapping[str, Any] | None, Mapping[str, Any]]],
    *,
    using: str | None = None,
    batch_size: int = 1000,
) -> list[Job]:
    """Do what `enqueue_many` does, from a coroutine."""
    return await sync_to_async(enqueue_many)(jobs, using=using, batch_size=batch_size)


def _request(job: tuple[str | Declaration, Mapping[str, Any] | None, Mapping[str, Any]]) -> Request:
    job_type, payload, options = job
    return build_request(job_type, payload, **options)


def _time(dialect: Dialect, value: datetime | float | None, absent: str) -> tuple[str, list[Any]]:
    """Return the SQL and parameters of a moment: a datetime, seconds from now, or `absent`."""
    if value is None:
        return absent, []
    if isinstance(value, datetime):
        return "%s", [dialect.time_param(value)]
    return dialect.later, [dialect.span(value)]


def _row(dialect: Dialect, request: Request) -> tuple[str, list[Any]]:
    """Return the VALUES row of a request: its SQL shape and its parameters."""
    available, available_params = _time(dialect, request.available, dialect.stamp)
    expires, expires_params = _time(dialect, request.expires, "NULL")
    shape = f"(%s, %s, {dialect.json_param}, %s, %s, %s, %s, %s, %s, %s, {available}, {expires})"
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
        *available_params,
        *expires_params,
    ]


def _insert(connection: BaseDatabaseWrapper, request: Request) -> tuple[int, bool]:
    """Insert one job; return its id and True, or the id of the job that has its key and False."""
    connection.ensure_connection()
    dialect = dialect_for(connection)
    shape, params = _row(dialect, request)
    insert = f"INSERT INTO leasequeue_job ({_COLUMNS}) VALUES {shape}"
    with connection.cursor() as cursor:
        # A duplicate that InnoDB meets at an INSERT is locked until the caller commits, and so is
        # the gap before it, where other producers insert: only a race may get that far.
        looks = _looks_first(connection, request)
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
            if (job_id := _holder(dialect, cursor, request, dialect.share_lock)) is not None:
                return job_id, False
            # The job that had the key was removed in between: the key is free again.


def _looks_first(connection: BaseDatabaseWrapper, request: Request) -> bool:
    """Tell whether the key is looked for before an INSERT tries it.

    Under a snapshot ON CONFLICT fails (40001) when the job that has the key changed since.
    """
    if not request.keyed:
        return False
    on_conflict = dialect_for(connection).on_conflict
    return not on_conflict or (not request.live_key and _reads_snapshot(connection))


def _seen_holder(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, request: Request
) -> int | None:
    """Return the id of a job that has the request's key, as far as it is seen without a lock.

    A snapshot may still show a job as live that has finished since: the new job would be lost, so
    there the key's entry is asked under a lock. A key that lasts forever cannot mislead.
    """
    dialect = dialect_for(connection)
    job_id = _holder(dialect, cursor, request)
    if job_id is not None and request.live_key and _reads_snapshot(connection):
        return _holder(dialect, cursor, request, dialect.share_lock)
    return job_id


def _reads_snapshot(connection: BaseDatabaseWrapper) -> bool:
    return in_transaction(connection) and dialect_for(connection).keeps_snapshot(connection)


def _holder(
    dialect: Dialect, cursor: CursorWrapper, request: Request, lock: str = ""
) -> int | None:
    """Return the id of the job that has the request's key.

    Without a `lock` a job that was committed after this transaction's snapshot is not seen. With
    one it is; the read is of the index alone, so the job's row stays free.
    """
    queue, column, digest = request.identity
    cursor.execute(
        tagged(
            "enqueue",
            f"SELECT id FROM leasequeue_job{dialect.hint(_INDEX_OF[column])} "
            f"WHERE {dialect.aside('queue_name')} = %s AND {column} = %s{lock}",
        ),
        [queue, digest],
    )
    row = cursor.fetchone()
    return row[0] if row else None


def _settle_conflict(connection: BaseDatabaseWrapper, request: Request, job_id: int) -> bool:
    """Do what `on_conflict` asks for; return False when there was no ready job to replace."""
    if request.on_conflict == "raise":
        raise KeyTaken(
            f"the key of this {request.job_type!r} job in queue {request.queue!r} belongs to "
            f"job {job_id}",
            job_id,
        )
    if request.on_conflict == "replace":
        return repeat(connection, lambda: _replace(connection, request, job_id))
    return True


def _replace(connection: BaseDatabaseWrapper, request: Request, job_id: int) -> bool:
    dialect = dialect_for(connection)
    available, available_params = _time(dialect, request.available, dialect.stamp)
    expires, expires_params = _time(dialect, request.expires, "NULL")
    with connection.cursor() as cursor:
        cursor.execute(
            tagged(
                "replace",
                f"UPDATE leasequeue_job SET job_type = %s, payload = {dialect.json_param}, "
                f"priority = %s, max_attempts = %s, max_crashes = %s, timeout = %s, "
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
                *available_params,
                *expires_params,
                job_id,
            ],
        )
        return bool(cursor.rowcount)


def _by_shape(connection: BaseDatabaseWrapper, requests: Iterable[Request]) -> list[list[Request]]:
    """Return the requests in lists that one multi-row INSERT can serve, each in order."""
    connection.ensure_connection()
    dialect = dialect_for(connection)
    shapes: dict[str, list[Request]] = {}
    for request in requests:
        shapes.setdefault(_row(dialect, request)[0], []).append(request)
    return list(shapes.values())


def _insert_batch(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    batch: Sequence[Request],
    found: dict[Identity, tuple[int, bool]],
) -> None:
    dialect = dialect_for(connection)
    # A key that a snapshot may show as taken, though it is free again, is asked one by one.
    snapshot = _reads_snapshot(connection)
    doubtful = [request for request in batch if snapshot and request.live_key]
    fresh = [request for request in batch if not (snapshot and request.live_key)]
    if any(_looks_first(connection, request) for request in fresh):
        _look_up(dialect, cursor, fresh, found, created=False)
        fresh = [request for request in fresh if request.identity not in found]
    rows = [_row(dialect, request) for request in fresh]
    sql = f"INSERT INTO leasequeue_job ({_COLUMNS}) VALUES {', '.join(row for row, _ in rows)}"
    params = [value for _, values in rows for value in values]
    if rows and dialect.on_conflict:
        sql += " ON CONFLICT DO NOTHING RETURNING id, queue_name, idempotency_key, live_key"
        cursor.execute(tagged("enqueue_many", sql), params)
        for job_id, *columns in cursor.fetchall():
            found[Identity.of(*columns)] = (job_id, True)
    elif rows:
        try:
            cursor.execute(tagged("enqueue_many", sql), params)
            _look_up(dialect, cursor, fresh, found, created=True)
        except IntegrityError as error:
            if not dialect.is_duplicate(error):
                raise
            # InnoDB undid just that statement; somebody took one of the keys meanwhile.
    for request in (*fresh, *doubtful):
        if request.identity not in found:
            found[request.identity] = _insert(connection, request)


def _look_up(
    dialect: Dialect,
    cursor: CursorWrapper,
    batch: Sequence[Request],
    found: dict[Identity, tuple[int, bool]],
    *,
    created: bool,
) -> None:
    """Add the ids of the batch's jobs that are in the table, by whichever key is unique."""
    groups: dict[tuple[str, Column], list[str]] = {}
    for queue, column, digest in (request.identity for request in batch):
        groups.setdefault((queue, column), []).append(digest)
    for (queue, column), digests in groups.items():
        cursor.execute(
            tagged(
                "enqueue_many",
                f"SELECT id, {column} FROM leasequeue_job{dialect.hint(_INDEX_OF[column])} "
                f"WHERE {dialect.aside('queue_name')} = %s AND {column} IN ({marks(digests)})",
            ),
            [queue, *digests],
        )
        for job_id, digest in cursor.fetchall():
            found.setdefault(Identity(queue, column, digest), (job_id, created))


def _in_one_transaction(
    connection: BaseDatabaseWrapper, work: Callable[[CursorWrapper], Any]
) -> Any:
    if in_transaction(connection):
        with connection.cursor() as cursor:
            return work(cursor)
    try:
        return run(connection, work)
    except CommitUnknown:
        # Keys are fixed by now, random ones too: what was committed is found, the rest inserted.
        return run(connection, work)


def _as_jobs(
    connection: BaseDatabaseWrapper,
    requests: Sequence[Request],
    found: Mapping[Identity, tuple[int, bool]],
) -> list[Job]:
    jobs: list[Job] = []
    seen: set[Identity] = set()
    for request in requests:
        job_id, created = found[request.identity]
        first = request.identity not in seen
        seen.add(request.identity)
        jobs.append(_as_job(connection, request, job_id, first and (created or not request.keyed)))
    return jobs


def _as_job(connection: BaseDatabaseWrapper, request: Request, job_id: int, created: bool) -> Job:
    """Return the job as a model instance; columns that were not read load when asked for."""
    known: dict[str, Any] = {"id": job_id, "queue_name": request.queue}
    if created:
        known |= {
            "job_type": request.job_type,
            "idempotency_key": request.idempotency_key,
            "priority": request.priority,
            "max_attempts": request.max_attempts,
            "status": "ready",
        }
    names = [field.attname for field in Job._meta.concrete_fields if field.attname in known]
    job = Job.from_db(connection.alias, names, [known[name] for name in names])
    job.created = created
    return job
