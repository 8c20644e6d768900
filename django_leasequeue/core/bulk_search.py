"""Finding the next jobs of a bulk run: from its place on, through one index, bounded reads.

A lane is one (status, job type), walked by id. Other conditions are computed, not searched for:
no statistics can tempt a planner to another index, and no statement reads more than its window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import marks, tagged

__all__ = ["START", "Bounds", "Found", "Place", "find"]


class Place(NamedTuple):
    """How far a run has come: everything up to this job was dealt with."""

    status: str
    job_type: str
    id: int


START = Place("", "", 0)


class Bounds(NamedTuple):
    """What there was when the run began: no later job, and none that became final later."""

    upper_id: int
    started_at: datetime


class Found(NamedTuple):
    """The next jobs, in order, and the place after them; without `more` they are the last."""

    ids: list[int]
    #: The place that it was searched from, in the same lane or before it.
    before: Place
    place: Place
    more: bool


def find(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    wanted: JobFilter,
    bounds: Bounds,
    place: Place,
    limit: int,
    window: int,
) -> Found:
    """Return at most `limit` jobs after `place`, looking at no more than `window` (or `limit`)."""
    if wanted.ids is not None:
        return _named(connection, cursor, wanted, bounds, place, limit)
    dialect = dialect_for(connection)
    while True:
        if place.status:
            rows = _rows(dialect, cursor, wanted, bounds, place, max(limit, window))
            if rows:
                return _first(rows, place, limit)
        following = _next_lane(dialect, cursor, wanted, place)
        if following is None:
            return Found([], place, place, more=False)
        place = following


def _named(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    wanted: JobFilter,
    bounds: Bounds,
    place: Place,
    limit: int,
) -> Found:
    """Return the next of the named jobs but those that died again after the run began.

    Another run over the same jobs may have requeued them meanwhile.
    """
    ids = tuple(wanted.ids or ())
    start = bisect_right(ids, place.id)
    taken = list(ids[start : start + limit])
    last = taken[-1] if taken else place.id
    since = min(bounds.started_at, wanted.died_before or bounds.started_at)
    again = _ended_since(connection, cursor, taken, since)
    found = [job_id for job_id in taken if job_id not in again]
    return Found(found, place, Place("", "", last), more=start + limit < len(ids))


def _ended_since(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, ids: Sequence[int], since: datetime
) -> set[int]:
    if not ids:
        return set()
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "bulk",
            f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('finished_at')} > %s",
        ),
        [*ids, dialect.time_param(since)],
    )
    return {row[0] for row in cursor.fetchall()}


def _first(rows: Sequence[tuple[int, int]], place: Place, limit: int) -> Found:
    ids: list[int] = []
    last = place.id
    for last, matches in rows:
        if matches:
            ids.append(last)
        if len(ids) == limit:
            break
    return Found(ids, place, place._replace(id=last), more=True)


def _rows(
    dialect: Dialect,
    cursor: CursorWrapper,
    wanted: JobFilter,
    bounds: Bounds,
    place: Place,
    window: int,
) -> Sequence[tuple[int, int]]:
    condition, params = _condition(dialect, wanted, bounds)
    stretch, places = dialect.stretch(("status", "job_type", "id"), place, bounds.upper_id)
    cursor.execute(
        tagged(
            "bulk",
            f"SELECT id, CASE WHEN {condition} THEN 1 ELSE 0 END FROM leasequeue_job"
            f"{dialect.hint('leasequeue_job_type')}{stretch} LIMIT {window:d}",
        ),
        [*params, *places],
    )
    rows: Sequence[tuple[int, int]] = cursor.fetchall()
    return rows


def _condition(dialect: Dialect, wanted: JobFilter, bounds: Bounds) -> tuple[str, list[Any]]:
    parts = ["(finished_at IS NULL OR finished_at <= %s)"]
    params: list[Any] = [dialect.time_param(bounds.started_at)]
    texts = {"queue_name": wanted.queue, "fingerprint": wanted.fingerprint}
    for column, text in texts.items():
        if text is not None:
            parts.append(f"{column} = %s")
            params.append(text)
    if wanted.died_after is not None:
        parts.append("finished_at >= %s")
        params.append(dialect.time_param(wanted.died_after))
    if wanted.died_before is not None:
        parts.append("(finished_at IS NULL OR finished_at < %s)")
        params.append(dialect.time_param(wanted.died_before))
    if without := list(wanted.without):
        parts.append(f"fingerprint NOT IN ({marks(without)})")
        params += without
    return " AND ".join(parts), params


def _next_lane(
    dialect: Dialect, cursor: CursorWrapper, wanted: JobFilter, place: Place
) -> Place | None:
    """Return the beginning of the lane after that of `place`."""
    statuses = [str(status) for status in wanted.statuses]
    for status in statuses[statuses.index(place.status) if place.status else 0 :]:
        here = status == place.status
        if wanted.job_type is not None:
            found = None if here else wanted.job_type
        else:
            found = _next_type(dialect, cursor, status, place.job_type if here else None)
        if found is not None:
            return Place(status, found, 0)
    return None


def _next_type(
    dialect: Dialect, cursor: CursorWrapper, status: str, after: str | None
) -> str | None:
    """Return the type that comes after another, or is the first: that may be the empty one."""
    cursor.execute(
        tagged(
            "bulk",
            f"SELECT job_type FROM leasequeue_job{dialect.hint('leasequeue_job_type')} WHERE "
            f"status = %s AND job_type {'>=' if after is None else '>'} %s "
            "ORDER BY job_type LIMIT 1",
        ),
        [status, after or ""],
    )
    row = cursor.fetchone()
    return row[0] if row else None
