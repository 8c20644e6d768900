"""The recent past: what finished in the last hour, by counts that end at a cap, and a sample.

How many jobs ended when comes from an index; which queues they were in, from the newest attempts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import ask, tagged
from django_leasequeue.outcomes import End

__all__ = ["BUCKETS", "BUCKET_CAP", "SPAN", "Bucket", "Recent", "read_finished", "read_recent"]

#: So much of the past is shown, in so many parts of equal length.
SPAN = timedelta(hours=1)
BUCKETS = 12
#: Where the count of one part ends.
BUCKET_CAP = 10_000
#: The newest attempts that are looked at.
_SAMPLE = 2000
_WELL = frozenset({End.COMPLETED.value, End.SKIPPED.value})
_BADLY = frozenset(
    end.value for end in (End.FAILED, End.TIMED_OUT, End.REJECTED, End.CRASHED, End.EXPIRED)
)


class Bucket(NamedTuple):
    """One part of the time: how many ended well, and how many badly."""

    well: int = 0
    badly: int = 0


@dataclass(frozen=True)
class Recent:
    """The newest attempts by queue, a Bucket for each part of the time, oldest first.

    `since` is where the sample begins: `SPAN` ago, or later when there were more attempts.
    """

    since: datetime
    until: datetime
    queues: dict[str, list[Bucket]] = field(default_factory=dict)


def read_finished(connection: BaseDatabaseWrapper, now: datetime) -> list[Bucket]:
    """Return how many jobs became done, and dead, in each part of the time, oldest first.

    Those whose burial is still to come are dead. Each count ends at `BUCKET_CAP`. Raises the
    database's errors.
    """
    dialect = dialect_for(connection)
    edges = [now - SPAN + number * SPAN / BUCKETS for number in range(BUCKETS + 1)]
    columns, params = [], []
    for begin, end in pairwise(map(dialect.time_param, edges)):
        columns += [_ended(dialect, "done"), _ended(dialect, "dead"), _UNBURIED]
        params += [begin, end] * 3
    sql = tagged("recent", f"SELECT {', '.join(columns)} FROM {_pending(dialect)}")
    (row,) = ask(connection, sql, params)
    return [
        Bucket(row[at], min(BUCKET_CAP, row[at + 1] + row[at + 2])) for at in range(0, len(row), 3)
    ]


def _ended(dialect: Dialect, status: str) -> str:
    """Return a capped count, as SQL, of jobs whose end lies between two moments."""
    order = f"{dialect.null_in_order('lease_until')}finished_at, id"
    return (
        f"(SELECT COUNT(*) FROM (SELECT 1 FROM leasequeue_job"
        f"{dialect.hint('leasequeue_job_recover')} WHERE status = '{status}' "
        "AND lease_until IS NULL AND finished_at > %s AND finished_at <= %s "
        f"ORDER BY {order} LIMIT {BUCKET_CAP:d}) AS counted)"
    )


#: Of the pending burials, those of one part.
_UNBURIED = "COUNT(CASE WHEN finished_at > %s AND finished_at <= %s THEN 1 END)"


def _pending(dialect: Dialect) -> str:
    """Return the times of the latest deaths, as a table, whose burial is still to come."""
    return (
        f"(SELECT finished_at FROM leasequeue_job{dialect.hint('leasequeue_job_recover')} "
        "WHERE status = 'dead' AND lease_until IS NOT NULL "
        f"ORDER BY lease_until DESC, finished_at DESC, id DESC LIMIT {BUCKET_CAP:d}) AS pending"
    )


def read_recent(connection: BaseDatabaseWrapper, now: datetime) -> Recent:
    """Return how the newest attempts ended, by queue; those of pruned jobs are not among them.

    Raises the database's errors.
    """
    dialect = dialect_for(connection)
    moment = dialect.select_moment("finished_at")
    # A question for each row, and no list of ids: MariaDB makes a table of one of a thousand.
    newest = (
        f"SELECT (SELECT queue_name FROM leasequeue_job{dialect.hint('PRIMARY')} "
        f"WHERE id = job_id), outcome, {moment} FROM (SELECT job_id, outcome, finished_at "
        f"FROM leasequeue_jobattempt ORDER BY id DESC LIMIT {_SAMPLE:d}) AS newest"
    )
    rows = [
        (queue, outcome, dialect.as_utc(ended))
        for queue, outcome, ended in ask(connection, tagged("recent", newest))
    ]
    since = now - SPAN
    if len(rows) == _SAMPLE:
        since = max(since, min(ended for _queue, _outcome, ended in rows if ended is not None))
    return _by_queue(Recent(since, now), rows)


def _by_queue(found: Recent, rows: Sequence[tuple[str | None, str, Any]]) -> Recent:
    part = max((found.until - found.since) / BUCKETS, timedelta(microseconds=1))
    for queue, outcome, ended in rows:
        at = min((ended - found.since) // part, BUCKETS - 1)
        if queue is None or at < 0 or outcome not in _WELL | _BADLY:
            continue
        buckets = found.queues.setdefault(queue, [Bucket()] * BUCKETS)
        well, badly = buckets[at]
        buckets[at] = Bucket(well + (outcome in _WELL), badly + (outcome in _BADLY))
    return found
