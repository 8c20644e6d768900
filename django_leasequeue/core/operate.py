"""What an operator does to jobs and queues; every call returns what really changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.changes import REQUEUED, cancel_rows, requeue_rows
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.operating import (
    Ids,
    Jobs,
    Row,
    ids_of,
    operate_on,
    update_jobs,
)
from django_leasequeue.core.payloads import Columns, payload_columns
from django_leasequeue.core.recover import BATCH, recover_batch
from django_leasequeue.core.request import checked_moment, checked_queue
from django_leasequeue.core.transaction import marks, tagged
from django_leasequeue.models import Queue
from django_leasequeue.statuses import FINAL, Status, sources_of

__all__ = [
    "REQUEUED",
    "cancel",
    "erase",
    "pause",
    "recover",
    "requeue",
    "reschedule",
    "resume",
]


def cancel(jobs: Jobs, *, using: str | None = None) -> list[int]:
    """Cancel jobs that are ready, parked, dead or running; return the ids that were cancelled.

    `jobs` is an id, a `Job`, or several of them, a queryset say. A running job's lease ends at
    once: its attempt is recorded as cancelled, and whatever its handler still commits through the
    queue is refused. Done and cancelled jobs are left alone, and so are jobs that stay locked.
    Raises nothing but the database's errors.
    """
    return operate_on(jobs, using, sources_of(Status.CANCELLED), cancel_rows)


def requeue(
    jobs: Jobs, *, payload: Mapping[str, Any] | None = None, using: str | None = None
) -> list[int]:
    """Make dead and cancelled jobs ready again now; return the ids that were requeued.

    `jobs` as in `cancel`. Each gets its attempts and crashes back; its history stays, numbering
    goes on, effects that were committed stay so. A job whose `key_until="finished"` key is held by
    another live job by now is refused, that is, left out. `payload` replaces that of one job: it
    is checked and signed as at an enqueue. Raises EnqueueError for a payload that could not be
    enqueued, and TypeError when one is given for several jobs; nothing is written then.
    """
    columns = None
    if payload is not None:
        ids = ids_of(jobs)
        if len(ids) != 1:
            raise TypeError("a payload is for one job: requeue the others by themselves")
        columns = payload_columns(connections[using or get_conf().DATABASE], ids[0], payload)
    return operate_on(jobs, using, REQUEUED, partial(requeue_rows, columns=columns or Columns()))


def erase(jobs: Jobs, *, using: str | None = None) -> list[int]:
    """Blank what finished jobs were told and told: payload, context, result, checkpoint, progress.

    `jobs` as in `cancel`. Error texts go as well, the history's too. Rows, statuses, keys
    (digests), names and times stay. A dead job's burial is called off. Returns the ids that were
    erased; jobs that are not done, dead or cancelled are left alone. Raises nothing but the
    database's errors.
    """
    return operate_on(jobs, using, tuple(sorted(FINAL)), _erase)


def reschedule(
    jobs: Jobs,
    *,
    delay: float | timedelta | None = None,
    run_after: datetime | None = None,
    using: str | None = None,
) -> list[int]:
    """Set when ready jobs become available; return the ids that were rescheduled.

    `jobs` as in `cancel`. `delay` is seconds from now, or a timedelta; `run_after` a datetime,
    aware under USE_TZ; with neither it is now. Other than ready jobs are left alone. Raises
    EnqueueError for a time that cannot be stored, and TypeError for both.
    """
    wanted = checked_moment(delay, run_after)

    def move(connection: BaseDatabaseWrapper, cursor: CursorWrapper, rows: Sequence[Row]) -> Ids:
        dialect = dialect_for(connection)
        if isinstance(wanted, datetime):
            moment, params = "%s", [dialect.time_param(wanted)]
        else:
            moment, params = dialect.later, [dialect.span(wanted or 0.0)]
        ids = [row.id for row in rows]
        update_jobs(connection, cursor, ids, f"available_at = {moment}", params, (Status.READY,))
        return ids

    return operate_on(jobs, using, (Status.READY,), move)


def pause(queue: str, *, by: str = "", reason: str = "", using: str | None = None) -> bool:
    """Put a queue on hold: within a second no worker claims from it. Running jobs finish.

    `queue` need not have jobs yet. `by` (up to 255 characters) and `reason` (up to 1000) are shown
    to whoever finds it paused; longer ones are cut. Returns False when it was paused already; who
    and why stay as they were. Raises EnqueueError for a name that no queue can have.
    """
    alias = using or get_conf().DATABASE
    name = checked_queue(queue)
    with transaction.atomic(using=alias):
        row, _made = Queue.objects.using(alias).get_or_create(name=name)
        held = Queue.objects.using(alias).filter(pk=row.pk, paused_at=None)
        values = {"paused_at": UtcNow(), "paused_by": by[:255], "pause_reason": reason[:1000]}
        return held.update(**values) == 1


def resume(queue: str, *, using: str | None = None) -> bool:
    """Let a paused queue run again, within a second. Returns False when it was not paused.

    `queue` is its name. Raises nothing but the database's errors.
    """
    alias = using or get_conf().DATABASE
    held = Queue.objects.using(alias).filter(name=queue, paused_at__isnull=False)
    return held.update(paused_at=None, paused_by="", pause_reason="") == 1


def recover(*, using: str | None = None) -> int:
    """Take back every expired lease now, as any running worker does; return how many.

    Each job becomes ready, or dead when its attempts or crashes are used up, as in recovery (seed
    S1). Raises nothing but the database's errors; what was taken back before one stays so.
    """
    connection = connections[using or get_conf().DATABASE]
    total = 0
    while True:
        recovered = len(recover_batch(connection))
        total += recovered
        if recovered < BATCH:
            return total


def _erase(connection: BaseDatabaseWrapper, cursor: CursorWrapper, rows: Sequence[Row]) -> Ids:
    ids = [row.id for row in rows]
    if not ids:
        return ids
    dialect = dialect_for(connection)
    empty, hint = dialect.json_param, dialect.hint("leasequeue_attempt_number")
    change = (
        f"payload = {empty}, context = {empty}, signature = '', result = NULL, "
        "checkpoint = NULL, progress = NULL, last_error = '', lease_until = NULL, "
        "lease_token = NULL"
    )
    update_jobs(connection, cursor, ids, change, ["{}", "{}"], sorted(FINAL))
    cursor.execute(
        tagged(
            "operate",
            f"UPDATE leasequeue_jobattempt{hint} SET error_text = '' "
            f"WHERE job_id IN ({marks(ids)})",
        ),
        ids,
    )
    return ids
