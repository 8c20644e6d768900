"""The board: what lies in the queues, in a few statements however many queues there are.

For pages: the figures are those of the gauges, which ask queue by queue and stop when time is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.dives import queue_names, ready_priorities
from django_leasequeue.core.gauges import CAP, QueueGauges, capped, capped_by_deadline
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["Board", "Overall", "read_board"]

#: Lanes that are looked at: each costs two capped counts.
_MOST_LANES = 100
#: What is counted of each status, of all queues together and of one at least.
_MOST_COUNTED = 20_000
_LEAST_CAP = 1000
_CLAIM = "leasequeue_job_claim"
_STATUSES = ("reserved", "dead", "parked")

_Lane = tuple[str, int]


class Overall(NamedTuple):
    """What lies in all queues, however many there are: counts that end at `CAP`.

    `paused` are the queues on hold, with jobs or without.
    """

    reserved: int
    dead: int
    parked: int
    pending_burials: int
    expired_leases: int
    paused: int


class Board(NamedTuple):
    """What was read, by the database's time `now`; a count at `cap` means so many, or more.

    `complete` is False when there are more queues, or more priorities, than were looked at;
    `overall` knows of those as well.
    """

    now: datetime
    queues: tuple[QueueGauges, ...]
    overall: Overall
    cap: int
    complete: bool


def read_board(connection: BaseDatabaseWrapper, *, most: int = 20, after: str = "") -> Board:
    """Read the figures of the first `most` queues whose names come after `after`.

    In the database's order of names. Raises its errors.
    """
    dialect = dialect_for(connection)
    now, overall = _overall(connection, dialect)
    names, complete = queue_names(connection, after, most)
    priorities, all_of_them = ready_priorities(connection, names)
    lanes = [(name, level) for name in names for level in sorted(priorities[name], reverse=True)]
    complete = complete and all_of_them and len(lanes) <= _MOST_LANES
    # A page has to be there within a second: the more queues, the less is counted of each.
    cap = max(_LEAST_CAP, min(CAP, _MOST_COUNTED // max(1, len(names))))
    waiting = _waiting(connection, dialect, lanes[:_MOST_LANES], now, cap)
    counts = _counts(connection, dialect, names, cap)
    queues = tuple(_gauges(name, counts[name], waiting.get(name)) for name in names)
    return Board(now, queues, overall, cap, complete)


def _gauges(
    name: str, counts: tuple[int, int, int, int], waiting: tuple[int, int, float] | None
) -> QueueGauges:
    reserved, dead, parked, paused = counts
    due, later, oldest = waiting or (0, 0, 0.0)
    return QueueGauges(name, due, later, reserved, dead, parked, oldest, paused=bool(paused))


def _waiting(
    connection: BaseDatabaseWrapper,
    dialect: Dialect,
    lanes: Sequence[_Lane],
    now: datetime,
    cap: int,
) -> dict[str, tuple[int, int, float]]:
    """Return by queue how many jobs are due and how many later, capped, and the oldest's age."""
    if not lanes:
        return {}
    moment = dialect.select_moment("available_at")
    due, later = (
        f"status = 'ready' AND priority = %s AND available_at {sign} %s" for sign in ("<=", ">")
    )
    oldest = (
        f"SELECT {moment} FROM leasequeue_job{dialect.hint(_CLAIM)} WHERE queue_name = %s "
        f"AND {due} ORDER BY available_at, id LIMIT 1"
    )
    each = f"SELECT %s, {capped(dialect, due, cap)}, {capped(dialect, later, cap)}, ({oldest})"
    until = dialect.time_param(now)
    # Numbered: a name that is only a parameter has no type on PostgreSQL.
    params: list[Any] = []
    for number, (name, level) in enumerate(lanes):
        params += [number, *[name, level, until] * 3]
    rows = [
        (lanes[number][0], ready, scheduled, dialect.as_utc(first))
        for number, ready, scheduled, first in ask(connection, _union("board", each, lanes), params)
    ]
    return _by_queue(rows, now, cap)


def _by_queue(
    rows: Sequence[tuple[str, int, int, datetime | None]], now: datetime, cap: int
) -> dict[str, tuple[int, int, float]]:
    """Return the lanes' counts summed up, and the age of the oldest due job of each queue."""
    found: dict[str, tuple[int, int, float]] = {}
    for name, ready, scheduled, first in rows:
        due, later, oldest = found.get(name, (0, 0, 0.0))
        age = (now - first).total_seconds() if first is not None else 0.0
        found[name] = (min(cap, due + ready), min(cap, later + scheduled), max(oldest, age))
    return found


def _overall(connection: BaseDatabaseWrapper, dialect: Dialect) -> tuple[datetime, Overall]:
    """Return the database's time, and the counts of all queues."""
    counts = [
        *(capped_by_deadline(dialect, status, cap=CAP) for status in _STATUSES),
        capped_by_deadline(dialect, "dead", "lease_until IS NOT NULL", CAP),
        capped_by_deadline(dialect, "reserved", f"lease_until <= {dialect.now}", CAP),
        "(SELECT COUNT(*) FROM leasequeue_queue WHERE paused_at IS NOT NULL)",
    ]
    clock = dialect.select_time(f"({dialect.now})")
    ((now, *found),) = ask(connection, tagged("board", f"SELECT {clock}, {', '.join(counts)}"))
    return dialect.as_utc(now) or datetime.now(UTC), Overall(*found)


def _counts(
    connection: BaseDatabaseWrapper, dialect: Dialect, names: Sequence[str], cap: int
) -> dict[str, tuple[int, int, int, int]]:
    """Return by queue the other counts and its pause."""
    if not names:
        return {}
    counts = ", ".join(capped(dialect, f"status = '{status}'", cap) for status in _STATUSES)
    paused = "SELECT COUNT(*) FROM leasequeue_queue WHERE name = %s AND paused_at IS NOT NULL"
    each = f"SELECT %s, {counts}, ({paused})"
    params: list[Any] = []
    for number, name in enumerate(names):
        params += [number, *[name] * (len(_STATUSES) + 1)]
    rows = ask(connection, _union("board", each, names), params)
    return {names[number]: tuple(row) for number, *row in rows}


def _union(tag: str, each: str, items: Sequence[object]) -> str:
    return tagged(tag, " UNION ALL ".join([each] * len(items)))
