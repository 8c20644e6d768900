"""Finding the dead letters that are meant: along an index, the newest few thousand of them.

One whose type or queue is named is found wherever it lies, along that name's index; where that
has too many, and for all others, the last to die are looked through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import ask, marks, tagged

__all__ = ["MOST_DEAD", "DeadLetter", "Found", "Sought", "search"]

#: How many are returned.
MOST_DEAD = 10_000
#: How many are looked at for those: a page has to be there within a second.
_WINDOW = 50_000
_RECOVER = "leasequeue_job_recover"
_TYPE = "leasequeue_job_type"
_CLAIM = "leasequeue_job_claim"


#: The columns that the three stretches of `_by_death` are in the order of.
_PLACES = ("lease_until", "finished_at", "id")


class DeadLetter(NamedTuple):
    """What groups a dead letter; `died_at` is None for one that plain SQL has made.

    `pending`: its burial is still to come.
    """

    id: int
    job_type: str
    queue: str
    fingerprint: str
    died_at: datetime | None
    pending: bool = False


class Sought(NamedTuple):
    """Which dead letters are meant: None matches all; the fingerprints `without` do not match."""

    queue: str | None = None
    job_type: str | None = None
    fingerprint: str | None = None
    without: Sequence[str] = ()


_ALL = Sought()


class Found(NamedTuple):
    """The newest that match, newest first; `whole`: there are no others.

    Those that are not among them died before the last of them, if it has a time. `left_out` are
    the groups, by type and fingerprint, that `without` has kept out of what was looked at.
    """

    letters: list[DeadLetter]
    whole: bool
    left_out: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A part of an index: what has it, and in which order the newest come first."""

    over: str
    where: str
    params: Sequence[Any] = field(repr=False)
    order: str


def search(connection: BaseDatabaseWrapper, sought: Sought = _ALL) -> Found:
    """Look for the `MOST_DEAD` dead letters that match and died last.

    Those whose burial is still to come are among them. At most six statements; raises the
    database's errors.
    """
    dialect = dialect_for(connection)
    stretches, all_of_them = _lane(connection, dialect, sought), True
    if not stretches:
        stretches, all_of_them = _by_death(connection, dialect, sought)
    rows = [row for one in stretches for row in _rows(connection, dialect, one, sought)]
    letters = [
        DeadLetter(row[0], row[1], row[2], row[3], dialect.as_utc(row[4]), bool(row[5]))
        for row in rows
    ]
    letters.sort(key=_when, reverse=True)
    left_out = _left_out(connection, dialect, stretches, sought) if sought.without else 0
    return Found(letters[:MOST_DEAD], all_of_them and len(rows) <= MOST_DEAD, left_out)


def _when(letter: DeadLetter) -> tuple[float, int]:
    return (letter.died_at.timestamp() if letter.died_at else 0.0, letter.id)


# ------------------------------------------------------------------------------ where to look


def _lane(connection: BaseDatabaseWrapper, dialect: Dialect, sought: Sought) -> list[_Stretch]:
    """Return the dead letters of the named type, or queue, if those are few enough to look at."""
    # No index has a type's, or a queue's, in the order of their deaths: they are sorted.
    order = "CASE WHEN finished_at IS NULL THEN 1 ELSE 0 END, finished_at DESC, id DESC"
    lanes = [
        _Stretch(index, f"{column} = %s AND status = 'dead'", [name], order)
        for index, column, name in (
            (_TYPE, "job_type", sought.job_type),
            (_CLAIM, "queue_name", sought.queue),
        )
        if name is not None
    ]
    if not lanes:
        return []
    within = {_TYPE: "id", _CLAIM: "priority, available_at, id"}
    beyond = [
        f"(SELECT 1 FROM leasequeue_job{dialect.hint(lane.over)} WHERE {lane.where} "
        f"ORDER BY {within[lane.over]} LIMIT 1 OFFSET {_WINDOW:d})"
        for lane in lanes
    ]
    params = [param for lane in lanes for param in lane.params]
    (row,) = ask(connection, tagged("dead", f"SELECT {', '.join(beyond)}"), params)
    return [lane for lane, more in zip(lanes, row, strict=True) if more is None][:1]


def _by_death(
    connection: BaseDatabaseWrapper, dialect: Dialect, sought: Sought
) -> tuple[list[_Stretch], bool]:
    """Return the last to die, as three stretches of one index; and whether these are all.

    It begins with lease_until, which only a burial that is to come has.
    """
    lease, died = map(dialect.null_in_order, ("lease_until DESC", "finished_at DESC"))
    stretches = [
        _Stretch(_RECOVER, f"status = 'dead' AND {where}", [], order)
        for where, order in (
            ("lease_until IS NOT NULL", "lease_until DESC, finished_at DESC, id DESC"),
            (
                "lease_until IS NULL AND finished_at IS NOT NULL",
                f"{lease}finished_at DESC, id DESC",
            ),
            ("lease_until IS NULL AND finished_at IS NULL", f"{lease}{died}id DESC"),
        )
    ]
    if not _matches(dialect, sought, _RECOVER)[0]:
        return stretches, True
    ends = _ends(connection, dialect, stretches)
    bounded = [
        one if end is None else replace(one, where=f"{one.where} AND {column} >= %s", params=[end])
        for one, column, end in zip(stretches, _PLACES, ends, strict=True)
    ]
    return bounded, not any(end is not None for end in ends)


def _ends(
    connection: BaseDatabaseWrapper, dialect: Dialect, stretches: Sequence[_Stretch]
) -> list[Any]:
    """Return where each stretch has `_WINDOW`, as a parameter; None for one that has fewer."""
    read = [dialect.select_moment(column) if column != "id" else column for column in _PLACES]
    ends = [
        f"(SELECT {column} FROM leasequeue_job{dialect.hint(_RECOVER)} WHERE {one.where} "
        f"ORDER BY {one.order} LIMIT 1 OFFSET {_WINDOW:d})"
        for one, column in zip(stretches, read, strict=True)
    ]
    ((*times, job_id),) = ask(connection, tagged("dead", f"SELECT {', '.join(ends)}"))
    moments = map(dialect.as_utc, times)
    return [*(None if one is None else dialect.time_param(one) for one in moments), job_id]


# ------------------------------------------------------------------------------ what is there


def _rows(
    connection: BaseDatabaseWrapper, dialect: Dialect, stretch: _Stretch, sought: Sought
) -> list[Any]:
    matches, params = _matches(dialect, sought, stretch.over)
    died = (
        f"CASE WHEN finished_at IS NULL THEN NULL ELSE {dialect.select_moment('finished_at')} END"
    )
    sql = (
        f"SELECT id, job_type, queue_name, fingerprint, {died}, lease_until IS NOT NULL "
        f"FROM leasequeue_job{dialect.hint(stretch.over)} WHERE {stretch.where}{matches} "
        f"ORDER BY {stretch.order} LIMIT {MOST_DEAD + 1:d}"
    )
    return ask(connection, tagged("dead", sql), [*stretch.params, *params])


def _matches(dialect: Dialect, sought: Sought, over: str) -> tuple[str, list[str]]:
    """Return what is asked beside the name that the index has; no other index is to serve it."""
    columns = {
        dialect.aside("queue_name"): None if over == _CLAIM else sought.queue,
        dialect.aside("job_type"): None if over == _TYPE else sought.job_type,
        "fingerprint": sought.fingerprint,
    }
    named = {column: name for column, name in columns.items() if name is not None}
    sql = "".join(f" AND {column} = %s" for column in named)
    if sought.without:
        sql += f" AND fingerprint NOT IN ({marks(sought.without)})"
    return sql, [*named.values(), *sought.without]


def _left_out(
    connection: BaseDatabaseWrapper,
    dialect: Dialect,
    stretches: Sequence[_Stretch],
    sought: Sought,
) -> int:
    matches, params = _matches(dialect, sought._replace(without=()), stretches[0].over)
    left = f"{matches} AND fingerprint IN ({marks(sought.without)})"
    parts = [
        f"SELECT job_type, fingerprint FROM leasequeue_job{dialect.hint(one.over)} "
        f"WHERE {one.where}{left} GROUP BY job_type, fingerprint"
        for one in stretches
    ]
    values = [p for one in stretches for p in (*one.params, *params, *sought.without)]
    return len(set(ask(connection, tagged("dead", " UNION ALL ".join(parts)), values)))
