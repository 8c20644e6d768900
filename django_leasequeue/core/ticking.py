"""Ticking: a schedule's due tick becomes a job, once, by any worker, without a leader.

The row's ticks move on by compare-and-set in the transaction that inserts the job, so a tick stays
unique even after its job was pruned. All times are the database's.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.db import DataError, IntegrityError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, Trouble, dialect_for, trouble
from django_leasequeue.core.insert import insert_one
from django_leasequeue.core.periodic import MISSED, Row, job_of, next_tick, row_columns
from django_leasequeue.core.request import Request
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged
from django_leasequeue.exceptions import RejectedJob, ScheduleError
from django_leasequeue.grid import Rule

__all__ = [
    "AT_ONCE",
    "BATCH",
    "MISSED",
    "KeyAwaited",
    "Ticked",
    "due_schedules",
    "seconds_to_next",
    "tick",
]

#: Schedules of one look.
BATCH = 100
#: Ticks of one transaction, each two statements: also over a slow line it is soon committed.
AT_ONCE = 10
#: A row that cannot tick is looked at again after so many seconds.
_RETRY = 60.0
_INDEX = "leasequeue_schedule_next"


class KeyAwaited(Exception):
    """A tick's job could not be inserted yet: somebody's open transaction holds its key."""


class Ticked(NamedTuple):
    """A tick that was taken; `job_id` is None where none was made, `error` says why it could not.

    Without a job and an error, another live job has the schedule's key.
    """

    schedule: str
    job_type: str
    queue: str
    tick_at: datetime | None
    late: float
    job_id: int | None
    error: str = ""


def seconds_to_next(connection: BaseDatabaseWrapper, declared: Collection[str]) -> float | None:
    """Return seconds to the next tick of all schedules that this worker may tick, None without.

    Not above 0 when one is due, or has to be planned. One statement. `declared` names the
    schedules that this worker's code declares: those of other code are not its business.
    """
    dialect = dialect_for(connection)
    mine, names = _mine(declared)
    rows = f"FROM leasequeue_schedule{dialect.hint(_INDEX)} WHERE enabled = %s AND {mine}"
    sql = (
        f"SELECT (SELECT {dialect.select_moment('next_tick')} {rows} AND next_tick IS NOT NULL "
        f"ORDER BY next_tick LIMIT 1), EXISTS (SELECT 1 {rows} AND next_tick IS NULL), "
        f"{dialect.select_time(dialect.now)}"
    )
    ((first, unplanned, now),) = ask(connection, tagged("tick", sql), [True, *names, True, *names])
    if unplanned:
        return 0.0
    following, present = dialect.as_utc(first), dialect.as_utc(now)
    if following is None or present is None:
        return None
    return (following - present).total_seconds()


def due_schedules(
    connection: BaseDatabaseWrapper, declared: Collection[str], after: int = 0
) -> list[int]:
    """Return the ids of up to BATCH schedules that are due or have to be planned, in order.

    `after` is the last id that had its turn: those behind it come first, so that all have theirs,
    however many there are and however much some of them have to catch up.
    """
    behind = _due_ids(connection, declared, after)
    return behind if behind or not after else _due_ids(connection, declared, 0)


def _due_ids(connection: BaseDatabaseWrapper, declared: Collection[str], after: int) -> list[int]:
    dialect = dialect_for(connection)
    mine, names = _mine(declared)
    sql = (
        f"SELECT id FROM leasequeue_schedule{dialect.hint(_INDEX)} "
        f"WHERE {_due_now(dialect)} AND {mine} AND id > %s "
        f"ORDER BY id LIMIT {BATCH}"
    )
    return [row[0] for row in ask(connection, tagged("tick", sql), [True, *names, after])]


def _due_now(dialect: Dialect) -> str:
    """Return the condition of a row that ticks or has to be planned; its parameter is True."""
    return f"enabled = %s AND (next_tick IS NULL OR next_tick <= {dialect.now})"


def _mine(declared: Collection[str]) -> tuple[str, list[Any]]:
    if not declared:
        return "declared_in_code = %s", [False]
    names = sorted(declared)
    return f"(declared_in_code = %s OR name IN ({marks(names)}))", [False, *names]


def tick(connection: BaseDatabaseWrapper, schedule_id: int) -> list[Ticked]:
    """Take what is due of one schedule, and enqueue the jobs, in one transaction.

    Returns nothing when another worker is at it or was, or when the row had to be planned only.
    Of a row that cannot tick the reason is returned: what this process cannot make a job of is
    left as it is, for a host without time zones, say, must not keep others from it; what the
    database refuses is put off for a minute. Waits for no lock of a schedule. Raises KeyAwaited
    when a transaction that has not ended has taken the schedule's key.
    """
    try:
        return run(connection, lambda cursor: _tick(connection, cursor, schedule_id))
    except CommitUnknown:
        return []  # taken or still due: the next pass sees which
    except OperationalError as error:
        if trouble(connection, error) is Trouble.REPEAT:
            raise KeyAwaited from error
        raise
    except (DataError, IntegrityError) as error:
        # The row's fault: all workers would meet it, and none would get any further.
        said = type(error).__name__
        return run(connection, lambda cursor: _postpone(connection, cursor, schedule_id, said))


def _tick(connection: BaseDatabaseWrapper, cursor: CursorWrapper, schedule_id: int) -> list[Ticked]:
    dialect = dialect_for(connection)
    locked = _lock(connection, cursor, schedule_id)
    if locked is None:
        return []
    row, now = locked
    try:
        rule = row.rule
        ticks, following = _due(rule, row, now)
        jobs = [job_of(row, moment) for moment in ticks]
    except (ScheduleError, RejectedJob) as error:
        return [_ticked(row, None, now, None, str(error))]
    if not _move(dialect, cursor, row, ticks, following):
        return []
    return [
        _ticked(row, moment, now, _insert(connection, cursor, job))
        for moment, job in zip(ticks, jobs, strict=True)
    ]


def _postpone(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, schedule_id: int, error: str
) -> list[Ticked]:
    """Put off a row that the database will not have, without reading more of it than names."""
    dialect = dialect_for(connection)
    names = (
        "SELECT name, job_type, queue_name FROM leasequeue_schedule "
        f"WHERE id = %s AND {_due_now(dialect)}{dialect.skip_locked}"
    )
    cursor.execute(tagged("tick", names), [schedule_id, True])
    found = cursor.fetchall()
    if not found:
        return []  # somebody is at it, or has disabled it or moved it on since
    change = f"UPDATE leasequeue_schedule SET next_tick = {dialect.later} WHERE id = %s"
    cursor.execute(tagged("tick", change), [dialect.span(_RETRY), schedule_id])
    return [
        Ticked(name, job_type, queue, None, 0.0, None, error) for name, job_type, queue in found
    ]


def _lock(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, schedule_id: int
) -> tuple[Row, datetime] | None:
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "tick",
            f"SELECT {dialect.select_time(dialect.now)}, {row_columns(connection)} "
            "FROM leasequeue_schedule "
            f"WHERE id = %s AND {_due_now(dialect)}{dialect.skip_locked}",
        ),
        [schedule_id, True],
    )
    found = cursor.fetchone()
    now = dialect.as_utc(found[0]) if found else None
    return None if now is None else (Row.read(dialect, found[1:]), now)


def _due(rule: Rule, row: Row, now: datetime) -> tuple[list[datetime], datetime]:
    """Return the ticks to take now, and the first to come after them."""
    if row.next_tick is None:
        return [], next_tick(rule, now, row.last_tick)
    # From the grid, not from the column: another rule may have been there when it was written.
    first = rule.from_(row.next_tick)
    if row.last_tick is not None and first <= row.last_tick:
        first = rule.after(row.last_tick)
    if first > now:
        return [], first
    if row.catch_up == "all" or (now - first).total_seconds() <= MISSED:
        ticks = [first]
        while len(ticks) < AT_ONCE and (following := rule.after(ticks[-1])) <= now:
            ticks.append(following)
        return ticks, rule.after(ticks[-1])
    latest = rule.latest(first, now)
    missed = row.catch_up == "none" and (now - latest).total_seconds() > MISSED
    return [] if missed else [latest], rule.after(latest)


def _move(
    dialect: Dialect, cursor: CursorWrapper, row: Row, ticks: list[datetime], following: datetime
) -> bool:
    """Write how far a locked schedule has come; False when it has come there before."""
    change, fence, params, known = "", "", [dialect.time_param(following)], []
    if ticks:
        change, fence = ", last_tick = %s", " AND (last_tick IS NULL OR last_tick < %s)"
        params.append(dialect.time_param(ticks[-1]))
        known.append(dialect.time_param(ticks[0]))
    cursor.execute(
        tagged(
            "tick",
            f"UPDATE leasequeue_schedule SET next_tick = %s{change}, "
            f"updated_at = {dialect.stamp} WHERE id = %s AND enabled = %s{fence}",
        ),
        [*params, row.id, True, *known],
    )
    return bool(cursor.rowcount)


def _insert(connection: BaseDatabaseWrapper, cursor: CursorWrapper, request: Request) -> int | None:
    """Insert a tick's job, unless there is one in any queue, or a live one with its key."""
    hint = dialect_for(connection).hint("leasequeue_job_key")
    cursor.execute(
        tagged("tick", f"SELECT 1 FROM leasequeue_job{hint} WHERE idempotency_key = %s"),
        [request.idempotency_key],
    )
    if cursor.fetchone():
        return None
    job_id, created = insert_one(connection, request)
    return job_id if created else None


def _ticked(
    row: Row, moment: datetime | None, now: datetime, job_id: int | None, error: str = ""
) -> Ticked:
    late = 0.0 if moment is None else (now - moment).total_seconds()
    return Ticked(row.name, row.job_type, row.queue_name, moment, late, job_id, error)
