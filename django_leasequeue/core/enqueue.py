"""Enqueue: in the caller's transaction; a taken key returns the job that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.announce import announce
from django_leasequeue.core.insert import has_key_now, insert_one
from django_leasequeue.core.insert_many import by_shape, insert_batch
from django_leasequeue.core.replace import replace_ready
from django_leasequeue.core.request import (
    Identity,
    Options,
    OptionsUsing,
    Request,
    build_request,
)
from django_leasequeue.core.sealing import seal
from django_leasequeue.core.transaction import (
    CommitUnknown,
    in_transaction,
    repeat,
    run,
)
from django_leasequeue.core.wake_workers import wake_workers
from django_leasequeue.exceptions import EnqueueError, KeyTaken
from django_leasequeue.models import Job
from django_leasequeue.registry import Declaration

__all__ = ["aenqueue", "aenqueue_many", "enqueue", "enqueue_many"]


def enqueue(
    job_type: str | Declaration,
    payload: Mapping[str, Any] | None = None,
    *,
    using: str | None = None,
    **options: Unpack[Options],
) -> Job:
    """Enqueue a job and return it.

    `job_type` is a name, or what `@job` made; `payload` a JSON object. Options: `queue`, `key`,
    `key_until` ("forever" or "finished"), `on_conflict` ("return", "replace" or "raise"),
    `priority` (-100 to 100, larger first), `delay` (seconds or timedelta) or `run_after`
    (datetime), `expires` (seconds, timedelta or datetime: cancelled instead of claimed after that,
    a retry as well), `max_attempts`, `timeout` (seconds one attempt may run), `using` (database
    alias).

    The job commits with the caller's transaction, or not at all. When `key` is taken the job that
    has it is returned with `created` False: unchanged ("return", seed S1), with this payload,
    priority, times and limits if it is still ready ("replace"); "raise" raises KeyTaken. A key that
    another open transaction has just inserted makes the caller wait for it. Raises EnqueueError,
    before anything is written, for whatever cannot be queued, TypeError for arguments that do not
    go together, and whatever a middleware's `on_enqueue` raises.
    """
    request = _request((job_type, payload, options))
    connection = connections[using or get_conf().DATABASE]
    job_id, created = repeat(connection, lambda: insert_one(connection, request))
    replaced = False
    if not created and request.keyed and request.on_conflict != "return":
        replaced = _replace_or_raise(connection, request, job_id)
        if not (replaced or _keeps_key(connection, request, job_id)):
            job_id, created = repeat(connection, lambda: insert_one(connection, request))
    job = _as_job(connection, request, job_id, created or not request.keyed)
    job.replaced = replaced
    announce(connection, [job])
    if job.created or replaced:
        wake_workers(connection, [request])
    return job


def enqueue_many(
    jobs: Iterable[tuple[str | Declaration, Mapping[str, Any] | None, Mapping[str, Any]]],
    *,
    using: str | None = None,
    batch_size: int = 1000,
) -> list[Job]:
    """Enqueue many jobs and return them in the same order.

    `jobs` are `(job_type, payload, options)` tuples. All are written or none is: in the caller's
    transaction, else in one of their own. Options are those of `enqueue`, but `on_conflict` can
    only be "return". All jobs are checked before the first is written: raises EnqueueError or
    TypeError as `enqueue` does for the first that is wrong. `batch_size` is rows per statement.
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
        for shape in by_shape(connection, distinct.values()):
            for start in range(0, len(shape), batch_size):
                insert_batch(connection, cursor, shape[start : start + batch_size], found)
        return found

    found = _in_one_transaction(connection, work)
    enqueued = _as_jobs(connection, requests, found)
    announce(connection, enqueued)
    pairs = zip(requests, enqueued, strict=True)
    wake_workers(connection, (request for request, job in pairs if job.created))
    return enqueued


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
    return seal(build_request(job_type, payload, **options))


def _replace_or_raise(connection: BaseDatabaseWrapper, request: Request, job_id: int) -> bool:
    """Do what `on_conflict` asks for; return False when there was no ready job to replace."""
    if request.on_conflict == "raise":
        raise KeyTaken(
            f"the key of this {request.job_type!r} job in queue {request.queue!r} belongs to "
            f"job {job_id}",
            job_id,
        )
    return repeat(connection, lambda: replace_ready(connection, request, job_id))


def _keeps_key(connection: BaseDatabaseWrapper, request: Request, job_id: int) -> bool:
    """Tell whether a job that could not be replaced has its key still; its end frees some."""
    live_key = request.live_key
    return not live_key or repeat(connection, lambda: has_key_now(connection, job_id, live_key))


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
