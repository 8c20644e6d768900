"""What an operator does to jobs and queues; every call returns what really changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

from django_leasequeue.conf import get_conf
from django_leasequeue.core.attempts import record
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import Lease
from django_leasequeue.core.recover import BATCH, recover_batch
from django_leasequeue.core.request import build_request
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged
from django_leasequeue.models import Job, Queue
from django_leasequeue.outcomes import End
from django_leasequeue.statuses import Status, sources_of

__all__ = ["REQUEUED", "cancel", "pause", "recover", "requeue", "reschedule", "resume"]

_CHUNK = 200
_TRIES_FOR_LOCKED = 5

Jobs = int | Job | Iterable[int | Job]


def cancel(jobs: Jobs, *, using: str | None = None) -> list[int]:
    """Cancel jobs that are ready, parked, dead or running; return the ids that were cancelled.

    A running job's lease ends at once: its attempt is recorded as cancelled, and whatever its
    handler still commits through the queue is refused. Done and cancelled jobs are left alone.
    """
    return _operate(jobs, using, sources_of(Status.CANCELLED), _cancel)


def requeue(jobs: Jobs, *, using: str | None = None) -> list[int]:
    """Make dead and cancelled jobs ready again now; return the ids that were requeued.

    Each gets its attempts and crashes back; its history stays, numbering goes on. A job whose
    `key_until="finished"` key is held by another live job by now is refused, that is, left out.
    """
    return _operate(jobs, using, REQUEUED, _requeue)


def reschedule(
    jobs: Jobs,
    *,
    delay: float | timedelta | None = None,
    run_after: datetime | None = None,
    using: str | None = None,
) -> list[int]:
    """Set when ready jobs become available (seconds from now, or a datetime; neither means now).

    Returns the ids that were rescheduled. Raises EnqueueError for a time that cannot be stored.
    """
    wanted = build_request("reschedule", delay=delay, run_after=run_after).available

    def move(connection: BaseDatabaseWrapper, cursor: CursorWrapper, rows: Sequence[_Row]) -> _Ids:
        dialect = dialect_for(connection)
        if isinstance(wanted, datetime):
            moment, params = "%s", [dialect.time_param(wanted)]
        else:
            moment, params = dialect.later, [dialect.span(wanted or 0.0)]
        ids = [row.id for row in rows]
        _update(connection, cursor, ids, f"available_at = {moment}", params, (Status.READY,))
        return ids

    return _operate(jobs, using, (Status.READY,), move)


def pause(queue: str, *, by: str = "", reason: str = "", using: str | None = None) -> bool:
    """Put a queue on hold: within a second no worker claims from it. Running jobs finish.

    Returns False when it was paused already (who and why stay as they were).
    """
    alias = using or get_conf().DATABASE
    name = build_request("pause", queue=queue).queue
    with transaction.atomic(using=alias):
        row, _made = Queue.objects.using(alias).get_or_create(name=name)
        held = Queue.objects.using(alias).filter(pk=row.pk, paused_at=None)
        values = {"paused_at": UtcNow(), "paused_by": by[:255], "pause_reason": reason[:1000]}
        return held.update(**values) == 1


def resume(queue: str, *, using: str | None = None) -> bool:
    """Let a paused queue run again. Returns False when it was not paused."""
    alias = using or get_conf().DATABASE
    held = Queue.objects.using(alias).filter(name=queue, paused_at__isnull=False)
    return held.update(paused_at=None, paused_by="", pause_reason="") == 1


def recover(*, using: str | None = None) -> int:
    """Take back every expired lease now, as any running worker does; return how many."""
    connection = connections[using or get_conf().DATABASE]
    total = 0
    while True:
        recovered = len(recover_batch(connection))
        total += recovered
        if recovered < BATCH:
            return total


REQUEUED = (Status.DEAD, Status.CANCELLED)


class _Row(NamedTuple):
    """A locked job's row."""

    id: int
    status: str
    token: bytes | None
    key_hash: str | None


_Ids = list[int]
_Change = Callable[[BaseDatabaseWrapper, CursorWrapper, Sequence[_Row]], _Ids]


def _operate(jobs: Jobs, using: str | None, sources: Sequence[Status], change: _Change) -> _Ids:
    """Run `change` over the jobs in `sources`, in ascending chunks, a transaction each.

    A row that a worker is just writing is skipped and met again a moment later; one that stays
    locked (a handler's own transaction) is left out, rather than holding up the operator.
    """
    given = [jobs] if isinstance(jobs, int | Model) else list(jobs)
    wanted = sorted({job if isinstance(job, int) else job.pk for job in given})
    connection = connections[using or get_conf().DATABASE]
    done: _Ids = []
    for start in range(0, len(wanted), _CHUNK):
        pending = wanted[start : start + _CHUNK]
        for tried in range(1, _TRIES_FOR_LOCKED + 1):
            locked, changed = _one_chunk(connection, pending, sources, change)
            done += changed
            pending = _left(connection, [i for i in pending if i not in locked], sources)
            if not pending:
                break
            time.sleep(0.02 * tried)
    return sorted(done)


def _one_chunk(
    connection: BaseDatabaseWrapper, ids: _Ids, sources: Sequence[Status], change: _Change
) -> tuple[set[int], _Ids]:
    changed: _Ids = []

    def work(cursor: CursorWrapper) -> set[int]:
        rows = _lock(connection, cursor, ids, sources)
        changed[:] = change(connection, cursor, rows)
        return {row.id for row in rows}

    try:
        return run(connection, work), changed
    except CommitUnknown:
        # All of it was committed, or nothing: what has left its source was changed by this.
        left = set(_left(connection, changed, sources))
        applied = [job_id for job_id in changed if job_id not in left]
        return set(applied), applied


def _left(connection: BaseDatabaseWrapper, ids: _Ids, sources: Sequence[Status]) -> _Ids:
    """Return which of `ids` still have a status that the operation changes."""
    if not ids:
        return []
    jobs = Job.objects.using(connection.alias).filter(pk__in=ids, status__in=sources)
    return sorted(jobs.values_list("pk", flat=True))


def _lock(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    ids: Sequence[int],
    statuses: Sequence[Status],
) -> list[_Row]:
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "operate",
            f"SELECT id, status, lease_token, key_hash FROM leasequeue_job"
            f"{dialect.hint('PRIMARY')} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} IN ({marks(statuses)}) "
            f"ORDER BY id{dialect.skip_locked}",
        ),
        [*ids, *(status.value for status in statuses)],
    )
    return [_Row(*row) for row in cursor.fetchall()]


def _update(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    ids: Sequence[int],
    change: str,
    params: Sequence[Any],
    statuses: Sequence[Status],
) -> None:
    if not ids:
        return
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "operate",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET {change}, "
            f"updated_at = {dialect.stamp} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} IN ({marks(statuses)})",
        ),
        [*params, *ids, *(status.value for status in statuses)],
    )


def _cancel(connection: BaseDatabaseWrapper, cursor: CursorWrapper, rows: Sequence[_Row]) -> _Ids:
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
        f"finished_at = {dialect_for(connection).stamp}"
    )
    _update(connection, cursor, ids, change, [], sources_of(Status.CANCELLED))
    return ids


def _requeue(connection: BaseDatabaseWrapper, cursor: CursorWrapper, rows: Sequence[_Row]) -> _Ids:
    stamp = dialect_for(connection).stamp
    change = (
        f"status = 'ready', available_at = {stamp}, attempts = 0, crashes = 0, releases = 0, "
        "bury_tries = 0, lease_token = NULL, lease_until = NULL, finished_at = NULL, "
        # An expiry that is past would cancel the job again at its next claim.
        f"expires_at = CASE WHEN expires_at <= {stamp} THEN NULL ELSE expires_at END"
    )
    plain = [row.id for row in rows if row.key_hash is None]
    _update(connection, cursor, plain, change, [], REQUEUED)
    keyed = [row.id for row in rows if row.key_hash is not None]
    return plain + [i for i in keyed if _win_back(connection, cursor, i, change)]


def _win_back(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, job_id: int, change: str
) -> bool:
    """Requeue one job together with its key; False when a live job has the key."""
    cursor.execute("SAVEPOINT leasequeue_key")
    try:
        _update(connection, cursor, [job_id], f"live_key = key_hash, {change}", [], REQUEUED)
    except IntegrityError as error:
        if not dialect_for(connection).is_duplicate(error):
            raise
        cursor.execute("ROLLBACK TO SAVEPOINT leasequeue_key")
        return False
    cursor.execute("RELEASE SAVEPOINT leasequeue_key")
    return True
