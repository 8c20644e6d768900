"""A job with its attempts and effects as one line of JSON, whatever its columns hold.

JSON columns are copied as the text that the database keeps: nothing is decoded, so that no number
is rounded and no depth refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper
from django.db.models import Field, JSONField, Model

from django_leasequeue.core.dialect import Dialect
from django_leasequeue.core.transaction import marks, tagged
from django_leasequeue.fields import TokenField, UtcDateTimeField
from django_leasequeue.models import Job, JobAttempt, JobEffect

__all__ = ["records", "within"]

#: Jobs, and attempts of theirs, that are in memory at a time; a single job may have more.
_JOBS, _ATTEMPTS = 25, 1000


def within(rows: Sequence[tuple[int, int]], jobs: int, attempts: int) -> int:
    """Return how many of the (id, claims) to take: few enough for both bounds, but one at least."""
    total = 0
    for number, (_id, claims) in enumerate(rows[:jobs]):
        total += claims
        if number and total > attempts:
            return number
    return min(len(rows), jobs)


def records(
    dialect: Dialect, cursor: CursorWrapper, rows: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Yield a JSON object for each (id, claims): `job`, `attempts` and `effects`, every column."""
    while rows:
        count = within(rows, _JOBS, _ATTEMPTS)
        ids = [row[0] for row in rows[:count]]
        rows = rows[count:]
        attempts = _children(dialect, cursor, JobAttempt, "number", ids)
        effects = _children(dialect, cursor, JobEffect, "name", ids)
        for job_id, job in _read(dialect, cursor, Job, "id", "PRIMARY", ids):
            yield (
                f'{{"job": {job}, "attempts": [{", ".join(attempts.get(job_id, ()))}], '
                f'"effects": [{", ".join(effects.get(job_id, ()))}]}}'
            )


def _children(
    dialect: Dialect, cursor: CursorWrapper, model: type[Model], order: str, ids: Sequence[int]
) -> dict[int, list[str]]:
    """Return the rows of each job as JSON, in their order."""
    index = model._meta.constraints[0].name
    found: dict[int, list[str]] = {}
    for job_id, text in _read(dialect, cursor, model, "job_id", index, ids, order):
        found.setdefault(job_id, []).append(text)
    return found


def _read(
    dialect: Dialect,
    cursor: CursorWrapper,
    model: type[Model],
    column: str,
    index: str,
    ids: Sequence[int],
    order: str = "id",
) -> Iterator[tuple[int, str]]:
    fields = model._meta.concrete_fields
    columns = ", ".join(_selected(dialect, field) for field in fields)
    cursor.execute(
        tagged(
            "archive",
            f"SELECT {column}, {columns} FROM {model._meta.db_table}{dialect.hint(index)} "
            f"WHERE {column} IN ({marks(ids)}) ORDER BY {column}, {order}",
        ),
        list(ids),
    )
    for job_id, *values in cursor.fetchall():
        pairs = zip(fields, values, strict=True)
        texts = (f"{json.dumps(f.column)}: {_text(dialect, f, value)}" for f, value in pairs)
        yield job_id, f"{{{', '.join(texts)}}}"


def _selected(dialect: Dialect, field: Field[Any, Any]) -> str:
    if not isinstance(field, UtcDateTimeField):
        return str(field.column)
    moment = dialect.select_moment(str(field.column))
    return f"CASE WHEN {field.column} IS NULL THEN NULL ELSE {moment} END"


def _text(dialect: Dialect, field: Field[Any, Any], value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(field, JSONField):
        # Line breaks are white space here: within JSON texts they are escaped.
        return str(value).replace("\n", " ").replace("\r", " ")
    if isinstance(field, UtcDateTimeField):
        moment = dialect.as_utc(value)
        return "null" if moment is None else f'"{moment.isoformat()}"'
    if isinstance(field, TokenField):
        return f'"{bytes(value).hex()}"'
    return json.dumps(value, ensure_ascii=False)
