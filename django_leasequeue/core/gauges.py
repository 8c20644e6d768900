"""Gauges: how much lies in each queue, by counts that end at a cap and walk one index.

Nothing here grows with the table: no GROUP BY, no full count. A figure at the cap means "so many,
or more".
"""

from __future__ import annotations

import time
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import ask, tagged

__all__ = [
    "CAP",
    "MOST_QUEUES",
    "Gauges",
    "QueueGauges",
    "capped",
    "capped_by_deadline",
    "read_gauges",
]

#: Where a count ends.
CAP = 10_000
#: How many queues are looked at, and priorities of each.
MOST_QUEUES = 50
_MOST_PRIORITIES = 20
_CLAIM = "leasequeue_job_claim"
_RECOVER = "leasequeue_job_recover"


class QueueGauges(NamedTuple):
    """One queue: capped counts, and the seconds since its oldest due job became due, or 0.

    `scheduled` jobs are ready in the future: later runs and retries.
    """

    queue: str
    ready: int
    scheduled: int
    reserved: int
    dead: int
    parked: int
    oldest_ready: float
    paused: bool


class Gauges(NamedTuple):
    """What was read; `complete` is False when there are more queues, or time was up."""

    queues: tuple[QueueGauges, ...]
    pending_burials: int
    expired_leases: int
    complete: bool

    @property
    def oldest_ready(self) -> float:
        """The age of the oldest due job in all queues that are not paused, in seconds."""
        return max((one.oldest_ready for one in self.queues if not one.paused), default=0.0)


def read_gauges(
    connection: BaseDatabaseWrapper, *, seconds: float = 2.0, most: int = MOST_QUEUES
) -> Gauges:
    """Read all gauges of `most` queues, no further one after `seconds`. Raises database errors.

    On a session of the worker's kind, whose every wait is bounded.
    """
    until = time.monotonic() + seconds
    dialect = dialect_for(connection)
    queues: list[QueueGauges] = []
    name = _next_queue(connection, dialect, None)
    while name is not None and len(queues) < most and time.monotonic() < until:
        queues.append(_queue(connection, dialect, name))
        name = _next_queue(connection, dialect, name)
    pending, expired = ask(
        connection,
        tagged(
            "gauges",
            f"SELECT {capped_by_deadline(dialect, 'dead', 'lease_until IS NOT NULL')}, "
            f"{capped_by_deadline(dialect, 'reserved', f'lease_until <= {dialect.now}')}",
        ),
    )[0]
    return Gauges(tuple(queues), pending, expired, complete=name is None)


def _next_queue(connection: BaseDatabaseWrapper, dialect: Dialect, after: str | None) -> str | None:
    """Return the next queue that has jobs of any status, by one index dive."""
    beyond, params = ("", []) if after is None else ("WHERE queue_name > %s ", [after])
    sql = (
        f"SELECT queue_name FROM leasequeue_job{dialect.hint(_CLAIM)} {beyond}"
        "ORDER BY queue_name LIMIT 1"
    )
    rows = ask(connection, tagged("gauges", sql), params)
    return rows[0][0] if rows else None


def _queue(connection: BaseDatabaseWrapper, dialect: Dialect, queue: str) -> QueueGauges:
    statuses = ("ready", "reserved", "dead", "parked")
    counts = ", ".join(capped(dialect, f"status = '{status}'", CAP) for status in statuses)
    paused = "SELECT COUNT(*) FROM leasequeue_queue WHERE name = %s AND paused_at IS NOT NULL"
    sql = f"SELECT {counts}, ({paused})"
    ((ready, reserved, dead, parked, held),) = ask(
        connection, tagged("gauges", sql), [queue] * (len(statuses) + 1)
    )
    due, later, oldest = _waiting(connection, dialect, queue) if ready else (0, 0, 0.0)
    return QueueGauges(
        queue,
        ready=due,
        scheduled=later,
        reserved=reserved,
        dead=dead,
        parked=parked,
        oldest_ready=oldest,
        paused=bool(held),
    )


def _waiting(
    connection: BaseDatabaseWrapper, dialect: Dialect, queue: str
) -> tuple[int, int, float]:
    """Return how many jobs are due and how many later, capped, and the age of the oldest.

    Priority by priority: only within one are they in the order of their times.
    """
    due, later, oldest = 0, 0, 0.0
    below: list[int] = []
    for _ in range(_MOST_PRIORITIES):
        further = "AND priority < %s " if below else ""
        rows = ask(
            connection,
            tagged(
                "gauges",
                f"SELECT priority FROM leasequeue_job{dialect.hint(_CLAIM)} WHERE queue_name = %s "
                f"AND status = 'ready' {further}ORDER BY priority DESC LIMIT 1",
            ),
            [queue, *below],
        )
        if not rows:
            break
        below = [rows[0][0]]
        counts, age = _lane(connection, dialect, queue, below[0], (CAP - due, CAP - later))
        due, later, oldest = due + counts[0], later + counts[1], max(oldest, age)
    return due, later, oldest


def _lane(
    connection: BaseDatabaseWrapper,
    dialect: Dialect,
    queue: str,
    priority: int,
    caps: tuple[int, int],
) -> tuple[tuple[int, int], float]:
    due, later = (
        f"status = 'ready' AND priority = %s AND available_at {sign} {dialect.now}"
        for sign in ("<=", ">")
    )
    moment = dialect.select_moment("available_at")
    first = (
        f"SELECT {moment} FROM leasequeue_job{dialect.hint(_CLAIM)} WHERE queue_name = %s "
        f"AND {due} ORDER BY available_at, id LIMIT 1"
    )
    now = dialect.select_time(f"({dialect.now})")
    counts = f"{capped(dialect, due, caps[0])}, {capped(dialect, later, caps[1])}"
    sql = f"SELECT {counts}, ({first}), {now}"
    ((number, waiting, since, moment_now),) = ask(
        connection, tagged("gauges", sql), [queue, priority] * 3
    )
    oldest, today = dialect.as_utc(since), dialect.as_utc(moment_now)
    if oldest is None or today is None:
        return (number, waiting), 0.0
    return (number, waiting), max(0.0, (today - oldest).total_seconds())


def capped(dialect: Dialect, condition: str, cap: int) -> str:
    """Return a capped count of a queue's jobs, as SQL, that walks the claim index and no other.

    Its first parameter is the queue's name; those of `condition` follow.
    """
    return (
        f"(SELECT COUNT(*) FROM (SELECT 1 FROM leasequeue_job{dialect.hint(_CLAIM)} "
        f"WHERE queue_name = %s AND {condition} "
        f"ORDER BY priority, available_at, id LIMIT {cap:d}) AS counted)"
    )


def capped_by_deadline(dialect: Dialect, status: str, condition: str = "", cap: int = CAP) -> str:
    """Return a capped count of all queues' jobs, as SQL, that walks the recovery index."""
    further = f"AND {condition} " if condition else ""
    return (
        f"(SELECT COUNT(*) FROM (SELECT 1 FROM leasequeue_job{dialect.hint(_RECOVER)} "
        f"WHERE status = '{status}' {further}"
        f"ORDER BY lease_until, finished_at, id LIMIT {cap:d}) AS counted)"
    )
