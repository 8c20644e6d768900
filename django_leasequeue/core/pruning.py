"""Pruning step by step: one short transaction takes a batch of jobs, their children first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.archive import Archive
from django_leasequeue.core.attempts import await_free
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.old_jobs import Target
from django_leasequeue.core.records import records, within
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged

__all__ = ["Batch", "count", "take"]

#: Attempts that one transaction deletes, unless a single job has more.
MOST_ATTEMPTS = 10_000
_CHILDREN = {
    "leasequeue_jobattempt": "leasequeue_attempt_number",
    "leasequeue_jobeffect": "leasequeue_effect_name",
}


class Batch(NamedTuple):
    """How many rows a transaction deleted, and the ids that it left for the next one."""

    jobs: int = 0
    attempts: int = 0
    effects: int = 0
    rest: tuple[int, ...] = ()


@dataclass(slots=True)
class _Taken:
    """What a transaction was about to do when the answer to its COMMIT was lost."""

    ids: list[int] = field(default_factory=list)
    batch: Batch = field(default_factory=Batch)


def take(
    connection: BaseDatabaseWrapper, target: Target, ids: Sequence[int], archive: Archive | None
) -> Batch:
    """Delete those of `ids` that are the target's and that nobody has locked, children first.

    They are in the archive before the transaction commits. Raises IntegrityError, with nothing
    done, when another table refers to one of them.
    """
    taken = _Taken()
    size = archive.size if archive else 0

    def work(cursor: CursorWrapper) -> Batch:
        return _take(connection, cursor, target, ids, archive, taken)

    try:
        return _settled(connection, work, taken)
    except IntegrityError:
        # PostgreSQL and SQLite may say so at COMMIT, when the archive has them already.
        if archive:
            archive.cut(size)
        raise


def _settled(
    connection: BaseDatabaseWrapper, work: Callable[[CursorWrapper], Batch], taken: _Taken
) -> Batch:
    try:
        return run(connection, work)
    except CommitUnknown:
        # All are gone or none is. A COMMIT that is still under way has them locked.
        if _any_left(connection, taken.ids):
            await_free(connection, taken.ids[0])
        return run(connection, work) if _any_left(connection, taken.ids) else taken.batch


def _take(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    target: Target,
    ids: Sequence[int],
    archive: Archive | None,
    taken: _Taken,
) -> Batch:
    dialect = dialect_for(connection)
    where, params = _condition(connection, target, ids)
    cursor.execute(
        tagged(
            "prune",
            f"SELECT id, claims FROM leasequeue_job{dialect.hint('PRIMARY')} "
            f"WHERE {where} ORDER BY id{dialect.skip_locked}",
        ),
        params,
    )
    rows = cursor.fetchall()
    now = rows[: within(rows, len(rows), MOST_ATTEMPTS)]
    taken.ids = [row[0] for row in now]
    taken.batch = Batch(rest=tuple(row[0] for row in rows[len(now) :]))
    if now and archive:
        with archive.undone_by_errors():
            archive.append(records(dialect, cursor, now))
            _delete(connection, cursor, target, taken)
    elif now:
        _delete(connection, cursor, target, taken)
    return taken.batch


def _delete(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, target: Target, taken: _Taken
) -> None:
    dialect = dialect_for(connection)
    gone = []
    for table, index in _CHILDREN.items():
        sql = f"{dialect.delete_from(table, index)} WHERE job_id IN ({marks(taken.ids)})"
        cursor.execute(tagged("prune", sql), taken.ids)
        gone.append(max(0, cursor.rowcount))
    where, params = _condition(connection, target, taken.ids)
    sql = f"{dialect.delete_from('leasequeue_job', 'PRIMARY')} WHERE {where}"
    cursor.execute(tagged("prune", sql), params)
    if cursor.rowcount != len(taken.ids):
        raise AssertionError("a locked job changed its status")
    taken.batch = taken.batch._replace(jobs=len(taken.ids), attempts=gone[0], effects=gone[1])


def _condition(
    connection: BaseDatabaseWrapper, target: Target, ids: Sequence[int]
) -> tuple[str, list[Any]]:
    """Return the WHERE of whatever is read, locked or deleted, and its parameters.

    A dead job with a deadline waits for its `failed` hook, or runs it: it stays.
    """
    dialect = dialect_for(connection)
    where = (
        f"id IN ({marks(ids)}) AND {dialect.aside('status')} = %s "
        f"AND {dialect.aside('lease_until')} IS NULL AND finished_at <= %s"
    )
    params = [*ids, target.status.value, dialect.time_param(target.before)]
    wanted: list[tuple[str, str, Sequence[str]]] = [
        ("queue_name", "IN", () if target.queue is None else (target.queue,)),
        ("job_type", "IN", target.types or ()),
        ("job_type", "NOT IN", target.other_than),
    ]
    for column, of, values in wanted:
        if values:
            where += f" AND {dialect.aside(column)} {of} ({marks(values)})"
            params += values
    return where, params


def count(connection: BaseDatabaseWrapper, target: Target, ids: Sequence[int]) -> Batch:
    """Return what `take` would delete of `ids` if nobody had any of them locked."""
    dialect = dialect_for(connection)
    where, params = _condition(connection, target, ids)
    sql = f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} WHERE {where}"
    found = [row[0] for row in ask(connection, tagged("prune", sql), params)]
    totals = [0] * len(_CHILDREN)
    for number, (table, index) in enumerate(_CHILDREN.items() if found else ()):
        sql = f"SELECT COUNT(*) FROM {table}{dialect.hint(index)} WHERE job_id IN ({marks(found)})"
        ((totals[number],),) = ask(connection, tagged("prune", sql), found)
    return Batch(len(found), totals[0], totals[1])


def _any_left(connection: BaseDatabaseWrapper, ids: Sequence[int]) -> bool:
    if not ids:
        return False
    index = dialect_for(connection).hint("PRIMARY")
    sql = f"SELECT id FROM leasequeue_job{index} WHERE id IN ({marks(ids)}) LIMIT 1"
    return bool(ask(connection, tagged("prune", sql), ids))
