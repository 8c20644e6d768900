"""A dry run: what a bulk run would change and leave out, counted by reading alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.bulk_plan import Plan, Reason
from django_leasequeue.core.bulk_search import START, Found, Place, find
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged

__all__ = ["preview"]

#: MariaDB makes a table of a list of a thousand, and scans that.
_WINDOW = 500


def preview(connection: BaseDatabaseWrapper, plan: Plan) -> tuple[int, Counter[str]]:
    """Return how many jobs would be changed, and how many left out, by reason.

    Two jobs of one key count as one changed and one left out. What somebody has locked counts as
    changed.
    """
    changed, left = 0, Counter[str]()
    met: set[int] = set()  # a number for each key
    for seen in _all(connection, plan):
        changed += len(seen.jobs)
        for key in seen.keys:
            if key in seen.held or hash(key) in met:
                changed -= 1
                left[Reason.KEY_HELD] += 1
            met.add(hash(key))
        left[Reason.OTHER_STATUS] += len(seen.elsewhere)
        left[Reason.GONE] += len(seen.found.ids) - len(seen.jobs) - len(seen.elsewhere)
    return changed, +left


_Key = tuple[str, str]


class _Seen(NamedTuple):
    """Some jobs: those in the right status, their keys, which of these a live job has."""

    found: Found
    jobs: Sequence[int]
    keys: Sequence[_Key]
    held: set[_Key]
    elsewhere: Sequence[int]


def _all(connection: BaseDatabaseWrapper, plan: Plan) -> Iterator[_Seen]:
    place, more = START, True
    while more:
        work = partial(_look, connection, plan, place)
        try:
            seen = run(connection, work)
        except CommitUnknown:
            seen = run(connection, work)  # it only reads
        yield seen
        place, more = seen.found.place, seen.found.more


def _look(
    connection: BaseDatabaseWrapper, plan: Plan, place: Place, cursor: CursorWrapper
) -> _Seen:
    dialect = dialect_for(connection)
    for statement in dialect.by_index:
        cursor.execute(statement)
    found = find(connection, cursor, plan.wanted, plan.bounds, place, _WINDOW, _WINDOW)
    rows: list[tuple[int, str, str, str | None]] = []
    if found.ids:
        sql = (
            f"SELECT id, status, queue_name, key_hash FROM leasequeue_job"
            f"{dialect.hint('PRIMARY')} WHERE id IN ({marks(found.ids)}) ORDER BY id"
        )
        cursor.execute(tagged("bulk", sql), found.ids)
        rows = cursor.fetchall()
    jobs = [row for row in rows if row[1] in plan.sources]
    keys = [(row[2], row[3]) for row in jobs if row[3] is not None and plan.needs_keys]
    held = _held(dialect, cursor, keys) if keys else set()
    elsewhere = [row[0] for row in rows if row[1] not in plan.sources]
    return _Seen(found, [row[0] for row in jobs], keys, held, elsewhere)


def _held(dialect: Dialect, cursor: CursorWrapper, keys: Sequence[_Key]) -> set[_Key]:
    digests = sorted({digest for _queue, digest in keys})
    sql = (
        f"SELECT queue_name, live_key FROM leasequeue_job{dialect.hint('leasequeue_job_live')} "
        f"WHERE live_key IN ({marks(digests)})"
    )
    cursor.execute(tagged("bulk", sql), digests)
    return {(queue, digest) for queue, digest in cursor.fetchall()}
