"""Finding finished jobs by their age: in the order of an index, a window at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import CommitUnknown, ask, run, tagged
from django_leasequeue.statuses import Status

__all__ = ["Target", "moment_ago", "walk"]


@dataclass(frozen=True, slots=True)
class Target:
    """Jobs of a status that finished at a moment or before, and wait for no `failed` hook.

    Of these `types`, or of all but `other_than` ones; of one queue, if it is named.
    """

    status: Status
    before: datetime
    queue: str | None = None
    types: tuple[str, ...] | None = None
    other_than: tuple[str, ...] = ()


def moment_ago(connection: BaseDatabaseWrapper, seconds: float) -> datetime:
    """Return the moment so many seconds ago, by the database's clock."""
    dialect = dialect_for(connection)
    sql = f"SELECT {dialect.select_time(dialect.later)}"
    ((value,),) = ask(connection, tagged("prune", sql), [dialect.span(-seconds)])
    moment: datetime = dialect.as_utc(value)  # type: ignore[assignment]  # it is never NULL
    return moment


def walk(connection: BaseDatabaseWrapper, target: Target, size: int) -> Iterator[list[int]]:
    """Yield the ids that have the target's status and age, oldest first, whatever their type.

    An index entry each: no row is read, none twice, and none that finished later.
    """
    dialect = dialect_for(connection)
    found = _window(connection, target, size, "finished_at <= %s", [])
    while found:
        yield [job_id for job_id, _finished in found]
        last_id, last = found[-1]
        moment = dialect.time_param(last)
        # Two ranges of the index; an OR of them would begin at the first job of that moment.
        same = "finished_at = %s AND id > %s AND finished_at <= %s"
        found = _window(connection, target, size, same, [moment, last_id])
        if len(found) < size:
            later = "finished_at > %s AND finished_at <= %s"
            found += _window(connection, target, size - len(found), later, [moment])


def _window(
    connection: BaseDatabaseWrapper, target: Target, size: int, range_: str, params: list[Any]
) -> list[tuple[int, datetime]]:
    dialect = dialect_for(connection)
    order = f"{dialect.null_in_order('lease_until')}finished_at, id"
    sql = (
        f"SELECT id, {dialect.select_moment('finished_at')} FROM leasequeue_job"
        f"{dialect.hint('leasequeue_job_recover')} "
        f"WHERE status = %s AND lease_until IS NULL AND {range_} ORDER BY {order} LIMIT {size}"
    )
    values = [target.status.value, *params, dialect.time_param(target.before)]

    rows = _in_order(connection, tagged("prune", sql), values)
    return [(job_id, dialect.as_utc(value)) for job_id, value in rows]  # type: ignore[misc]


def _in_order(connection: BaseDatabaseWrapper, sql: str, params: list[Any]) -> list[Any]:
    dialect = dialect_for(connection)
    if not dialect.in_order:
        return ask(connection, sql, params)

    def look(cursor: CursorWrapper) -> list[Any]:
        cursor.execute(dialect.in_order)
        cursor.execute(sql, params)
        found: list[Any] = cursor.fetchall()
        return found

    try:
        return run(connection, look)
    except CommitUnknown:
        return run(connection, look)  # it has only read
