"""Presence: a worker's row among the workers, for operators. It decides nothing about jobs.

No worker deletes a row: one that starts takes over the row of one that is gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import tagged

__all__ = [
    "CurrentJob",
    "Presence",
    "announce",
    "depart",
    "drain_requested",
    "refresh",
    "request_drain",
]

#: A worker that was not seen for so many seconds is gone, however it ended.
GONE_AFTER = 24 * 3600.0
_TRIES = 5
_CANDIDATES = 5


class CurrentJob(NamedTuple):
    """A job that a worker holds: its id and type, and since when."""

    id: int
    type: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Presence:
    """What a worker tells of itself; its `name` is its own, as in the jobs' `leased_by`."""

    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    children: int
    jobs: tuple[CurrentJob, ...] = ()


def announce(connection: BaseDatabaseWrapper, presence: Presence) -> int:
    """Give a worker that starts a row and return its id.

    It is the row of a worker that stopped or was not seen for a day, if there is one, else a new
    one. A row that has this name already is taken over as well. Raises the database's errors.
    """
    for tried in range(1, _TRIES + 1):
        try:
            return _take_over(connection, presence) or _insert(connection, presence)
        except IntegrityError as error:
            # Another announcement of this name came in between: its row is found now.
            if tried == _TRIES or not dialect_for(connection).is_duplicate(error):
                raise
    raise AssertionError("unreachable")


def refresh(connection: BaseDatabaseWrapper, row_id: int, presence: Presence) -> bool:
    """Note that the worker is there now, and what it does.

    Returns False when its row is gone or another worker's by now: announce it again. Raises the
    database's errors; nothing is repeated, for the next refresh is near.
    """
    dialect = dialect_for(connection)
    columns, params = _state(dialect, presence)
    changed = _execute(
        connection,
        f"UPDATE leasequeue_worker SET {_assign(columns)} WHERE id = %s AND name = %s",
        [*params, row_id, presence.name],
    )
    return changed == 1


def depart(connection: BaseDatabaseWrapper, row_id: int, name: str) -> None:
    """Note that the worker stopped. Leaves the row alone when it is another worker's by now."""
    dialect = dialect_for(connection)
    _execute(
        connection,
        f"UPDATE leasequeue_worker SET stopped_at = {dialect.stamp}, seen_at = {dialect.stamp}, "
        f"children = 0, current_jobs = {dialect.json_param} "
        "WHERE id = %s AND name = %s AND stopped_at IS NULL",
        ["[]", row_id, name],
    )


def request_drain(connection: BaseDatabaseWrapper, row_id: int, name: str) -> bool:
    """Ask a worker to drain, as SIGTERM does: it learns of it when it next refreshes its row.

    Returns False when it has stopped, was asked before, or its row is another worker's by now.
    """
    dialect = dialect_for(connection)
    changed = _execute(
        connection,
        f"UPDATE leasequeue_worker SET drain_requested_at = {dialect.stamp} "
        "WHERE id = %s AND name = %s AND stopped_at IS NULL AND drain_requested_at IS NULL",
        [row_id, name],
    )
    return changed == 1


def drain_requested(connection: BaseDatabaseWrapper, row_id: int, name: str) -> bool:
    """Tell whether an operator asked the worker of this row and name to drain."""
    with connection.cursor() as cursor:
        cursor.execute(
            tagged(
                "presence",
                "SELECT COUNT(*) FROM leasequeue_worker "
                "WHERE id = %s AND name = %s AND drain_requested_at IS NOT NULL",
            ),
            [row_id, name],
        )
        return bool(cursor.fetchone()[0])


def _take_over(connection: BaseDatabaseWrapper, presence: Presence) -> int | None:
    """Write over the row of a worker that is gone, if there is one, and return its id."""
    dialect = dialect_for(connection)
    columns, params = _identity(dialect, presence)
    free = f"(name = %s OR stopped_at IS NOT NULL OR seen_at < {dialect.later})"
    gone = [presence.name, dialect.span(-GONE_AFTER)]
    for row_id, name in _candidates(connection, free, gone, presence.name):
        # Compare and set: of several workers that start at once, one gets it.
        changed = _execute(
            connection,
            f"UPDATE leasequeue_worker SET {_assign(columns)} "
            f"WHERE id = %s AND name = %s AND {free}",
            [*params, row_id, name, *gone],
        )
        if changed == 1:
            return row_id
    return None


def _candidates(
    connection: BaseDatabaseWrapper, free: str, gone: Sequence[Any], own: str
) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            tagged(
                "presence",
                f"SELECT id, name FROM leasequeue_worker WHERE {free} "
                f"ORDER BY CASE WHEN name = %s THEN 0 ELSE 1 END, id LIMIT {_CANDIDATES}",
            ),
            [*gone, own],
        )
        rows: list[tuple[int, str]] = cursor.fetchall()
        return rows


def _insert(connection: BaseDatabaseWrapper, presence: Presence) -> int:
    columns, params = _identity(dialect_for(connection), presence)
    _execute(
        connection,
        f"INSERT INTO leasequeue_worker ({', '.join(columns)}) "
        f"VALUES ({', '.join(columns.values())})",
        params,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            tagged("presence", "SELECT id FROM leasequeue_worker WHERE name = %s"), [presence.name]
        )
        (row_id,) = cursor.fetchone()
        return int(row_id)


def _identity(dialect: Dialect, presence: Presence) -> tuple[dict[str, str], list[Any]]:
    """Return the columns of a worker that starts, as SQL, and their parameters."""
    state, params = _state(dialect, presence)
    columns = {
        **dict.fromkeys(("name", "host", "pid"), "%s"),
        **state,
        "started_at": dialect.stamp,
        "stopped_at": "NULL",
        "drain_requested_at": "NULL",
    }
    return columns, [presence.name, presence.host[:255], presence.pid, *params]


def _state(dialect: Dialect, presence: Presence) -> tuple[dict[str, str], list[Any]]:
    """Return the columns that change while a worker runs, as SQL, and their parameters."""
    jobs = [
        {"id": job.id, "type": job.type, "since": job.since.astimezone(UTC).isoformat()}
        for job in presence.jobs
    ]
    columns = {
        "version": "%s",
        "queues": dialect.json_param,
        "children": "%s",
        "current_jobs": dialect.json_param,
        "seen_at": dialect.stamp,
    }
    queues, current = json.dumps(presence.queues), json.dumps(jobs)
    return columns, [presence.version[:64], queues, presence.children, current]


def _assign(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{column} = {value}" for column, value in columns.items())


def _execute(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(tagged("presence", sql), params)
        return int(cursor.rowcount)
