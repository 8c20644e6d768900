"""Changing jobs that an operator names: in chunks, each locked, without waiting for a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged
from django_leasequeue.models import Job
from django_leasequeue.statuses import Status

__all__ = ["Change", "Ids", "Jobs", "Row", "ids_of", "lock_jobs", "operate_on", "update_jobs"]

_CHUNK = 200
_TRIES_FOR_LOCKED = 5

Jobs = int | Job | Iterable[int | Job]


class Row(NamedTuple):
    """A locked job's row."""

    id: int
    status: str
    token: bytes | None
    key_hash: str | None


Ids = list[int]
Change = Callable[[BaseDatabaseWrapper, CursorWrapper, Sequence[Row]], Ids]


def ids_of(jobs: Jobs) -> Ids:
    """Return the ids of what an operator named, in order, each once."""
    given = [jobs] if isinstance(jobs, int | Model) else list(jobs)
    return sorted({job if isinstance(job, int) else job.pk for job in given})


def operate_on(jobs: Jobs, using: str | None, sources: Sequence[Status], change: Change) -> Ids:
    """Run `change` over the jobs in `sources`, in ascending chunks, a transaction each.

    A row that a worker is just writing is skipped and met again a moment later; one that stays
    locked (a handler's own transaction) is left out, rather than holding up the operator.
    """
    wanted = ids_of(jobs)
    connection = connections[using or get_conf().DATABASE]
    done: Ids = []
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
    connection: BaseDatabaseWrapper, ids: Ids, sources: Sequence[Status], change: Change
) -> tuple[set[int], Ids]:
    changed: Ids = []

    def work(cursor: CursorWrapper) -> set[int]:
        rows = lock_jobs(connection, cursor, ids, sources)
        changed[:] = change(connection, cursor, rows)
        return {row.id for row in rows}

    try:
        return run(connection, work), changed
    except CommitUnknown:
        # All of it was committed, or nothing: what has left its source was changed by this.
        left = set(_left(connection, changed, sources))
        applied = [job_id for job_id in changed if job_id not in left]
        return set(applied), applied


def _left(connection: BaseDatabaseWrapper, ids: Ids, sources: Sequence[Status]) -> Ids:
    """Return which of `ids` still have a status that the operation changes."""
    if not ids:
        return []
    jobs = Job.objects.using(connection.alias).filter(pk__in=ids, status__in=sources)
    return sorted(jobs.values_list("pk", flat=True))


def lock_jobs(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    ids: Sequence[int],
    statuses: Sequence[Status],
) -> list[Row]:
    """Lock those of the jobs that have one of `statuses` and that nobody holds; return them."""
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
    return [Row(*row) for row in cursor.fetchall()]


def update_jobs(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    ids: Sequence[int],
    change: str,
    params: Sequence[Any],
    statuses: Sequence[Status],
) -> None:
    """Write `change` to jobs that the caller has locked, if they still have one of `statuses`."""
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
