"""Inserting many jobs with few statements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.insert import (
    COLUMNS,
    INDEX_OF,
    insert_one,
    looks_first,
    reads_snapshot,
    values_row,
)
from django_leasequeue.core.request import Column, Identity, Request
from django_leasequeue.core.transaction import marks, tagged

__all__ = ["by_shape", "insert_batch"]

#: A column that has both of two numbers is of the wider type.
_TYPES = {str: "text", float: "double precision", int: "bigint", datetime: "timestamptz"}


def by_shape(connection: BaseDatabaseWrapper, requests: Iterable[Request]) -> list[list[Request]]:
    """Return the requests in lists that one multi-row INSERT can serve, each in order."""
    connection.ensure_connection()
    dialect = dialect_for(connection)
    shapes: dict[str, list[Request]] = {}
    for request in requests:
        shapes.setdefault(values_row(dialect, request)[0], []).append(request)
    return list(shapes.values())


def insert_batch(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    batch: Sequence[Request],
    found: dict[Identity, tuple[int, bool]],
) -> None:
    """Insert the jobs of one shape; add what was inserted, or has their key, to `found`."""
    dialect = dialect_for(connection)
    # A key that a snapshot may show as taken, though it is free again, is asked one by one.
    snapshot = reads_snapshot(connection)
    doubtful = [request for request in batch if snapshot and request.live_key]
    fresh = [request for request in batch if not (snapshot and request.live_key)]
    if any(looks_first(connection, request) for request in fresh):
        _look_up(dialect, cursor, fresh, found, created=False)
        fresh = [request for request in fresh if request.identity not in found]
    rows = [values_row(dialect, request) for request in fresh]
    source, params = _source(dialect, rows)
    sql = f"INSERT INTO leasequeue_job ({COLUMNS}) {source}"
    if rows and dialect.on_conflict:
        sql += " ON CONFLICT DO NOTHING RETURNING id, queue_name, idempotency_key, live_key"
        cursor.execute(tagged("enqueue_many", sql), params)
        for job_id, *columns in cursor.fetchall():
            found[Identity.of(*columns)] = (job_id, True)
    elif rows:
        try:
            cursor.execute(tagged("enqueue_many", sql), params)
            _look_up(dialect, cursor, fresh, found, created=True)
        except IntegrityError as error:
            if not dialect.is_duplicate(error):
                raise
            # InnoDB undid just that statement; somebody took one of the keys meanwhile.
    for request in (*fresh, *doubtful):
        if request.identity not in found:
            found[request.identity] = insert_one(connection, request)


def _source(dialect: Dialect, rows: Sequence[tuple[str, list[Any]]]) -> tuple[str, list[Any]]:
    """Return what follows the columns in an INSERT of rows of one shape, and its parameters."""
    if not (rows and dialect.json_rows):
        values = ", ".join(shape for shape, _ in rows)
        return f"VALUES {values}", [value for _, values in rows for value in values]
    shape, names = rows[0][0], [f"c{number}" for number in range(len(rows[0][1]))]
    objects = [dict(zip(names, values, strict=True)) for _, values in rows]
    types = {name: _type_of(row[name] for row in objects) for name in names}
    typed = ", ".join(f"{name} {kind or 'text'}" for name, kind in types.items())
    chosen = [f"r.{name}" if kind else "NULL" for name, kind in types.items()]
    selected = shape[1:-1].replace("%s", "{}").format(*chosen)
    sql = f"SELECT {selected} FROM {dialect.json_rows.format(columns=typed)}"
    return sql, [json.dumps(objects, default=datetime.isoformat, ensure_ascii=False)]


def _type_of(values: Iterable[Any]) -> str | None:
    """Return the SQL type of a column's values, None when there are none."""
    found = {type(value) for value in values} - {type(None)}
    return next((name for kind, name in _TYPES.items() if kind in found), None)


def _look_up(
    dialect: Dialect,
    cursor: CursorWrapper,
    batch: Sequence[Request],
    found: dict[Identity, tuple[int, bool]],
    *,
    created: bool,
) -> None:
    """Add the ids of the batch's jobs that are in the table, by whichever key is unique."""
    groups: dict[tuple[str, Column], list[str]] = {}
    for queue, column, digest in (request.identity for request in batch):
        groups.setdefault((queue, column), []).append(digest)
    for (queue, column), digests in groups.items():
        cursor.execute(
            tagged(
                "enqueue_many",
                f"SELECT id, {column} FROM leasequeue_job{dialect.hint(INDEX_OF[column])} "
                f"WHERE {dialect.aside('queue_name')} = %s AND {column} IN ({marks(digests)})",
            ),
            [queue, *digests],
        )
        for job_id, digest in cursor.fetchall():
            found.setdefault(Identity(queue, column, digest), (job_id, created))
