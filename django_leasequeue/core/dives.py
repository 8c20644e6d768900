"""Dives: queue names and priorities found along the claim index, many dives in one statement.

Each dive reads one entry. One statement for a chain of them would be a recursive one, whose ranges
are no constants: MariaDB reads the whole index for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["queue_names", "ready_priorities"]

_CLAIM = "leasequeue_job_claim"
#: So many of the newest jobs tell which queues are likely.
_NEWEST = 1000
_ROUNDS = 8
_PRIORITY_ROUNDS = 4
_BEYOND = (-32_769, 32_768)

#: The names that earlier looks of this process have found, by alias: where to dive, no more.
_likely: dict[str, set[str]] = {}
_MOST_LIKELY = 1000


def queue_names(connection: BaseDatabaseWrapper, after: str, most: int) -> tuple[list[str], bool]:
    """Return up to `most` queues that have jobs and come after `after`; and whether that is all.

    From each likely name on the next one is asked for, all in one statement, until the chain is
    closed. Raises the database's errors.
    """
    # A copy: other threads look at the same time.
    known = set(_likely.get(connection.alias, ()))
    if len(known) > _MOST_LIKELY:
        known.clear()
    chain, closed = _chain(connection, known, after, most)
    # What is likely no more would only be in the way.
    last = chain[-1] if chain else after
    known.difference_update({name for name in known if name > after and (closed or name <= last)})
    _likely[connection.alias] = known | set(chain)
    return chain[:most], closed and len(chain) <= most


def _chain(
    connection: BaseDatabaseWrapper, likely: set[str], after: str, most: int
) -> tuple[list[str], bool]:
    """Return the names that follow `after`, one more than `most`; and whether there is no other.

    Where the likely names do not do, those of the newest jobs are added to them.
    """
    chain: list[str] = []
    at, closed = after, False
    ask_newest_at = int(bool(likely))
    for number in range(_ROUNDS):
        if number == ask_newest_at:
            likely.update(_newest(connection))
        starts = [at, *sorted(name for name in likely if name > at)[:most]]
        following = dict(zip(starts, _next_names(connection, starts), strict=True))
        while at in following and not closed and len(chain) <= most:
            name = following[at]
            closed = name is None
            if name is not None:
                chain.append(name)
                at = name
        if closed or len(chain) > most:
            break
    return chain, closed


def _newest(connection: BaseDatabaseWrapper) -> set[str]:
    sql = f"SELECT queue_name FROM leasequeue_job ORDER BY id DESC LIMIT {_NEWEST:d}"
    return {name for (name,) in ask(connection, tagged("board", sql))}


def _next_names(connection: BaseDatabaseWrapper, starts: Sequence[str]) -> Sequence[str | None]:
    dive = (
        f"(SELECT queue_name FROM leasequeue_job{dialect_for(connection).hint(_CLAIM)} "
        "WHERE queue_name > %s ORDER BY queue_name LIMIT 1)"
    )
    (row,) = ask(connection, tagged("board", f"SELECT {', '.join([dive] * len(starts))}"), starts)
    return list(row)


def ready_priorities(
    connection: BaseDatabaseWrapper, names: Sequence[str]
) -> tuple[dict[str, set[int]], bool]:
    """Return the priorities of each queue's ready jobs, from both ends; and whether that is all.

    A statement for the largest and the smallest of all queues, then for those in between. Raises
    the database's errors.
    """
    found: dict[str, set[int]] = {name: set() for name in names}
    between = dict.fromkeys(names, _BEYOND)
    for _round in range(_PRIORITY_ROUNDS):
        if not between:
            break
        further = {}
        for name, least, largest in _ends(connection, between):
            if largest is None:
                continue
            found[name] |= {least, largest}
            if largest - least > 1:
                further[name] = (least, largest)
        between = further
    return found, not between


def _ends(
    connection: BaseDatabaseWrapper, between: dict[str, tuple[int, int]]
) -> list[tuple[str, Any, Any]]:
    """Return each queue with the smallest and largest priority strictly between two."""
    dive = (
        f"(SELECT priority FROM leasequeue_job{dialect_for(connection).hint(_CLAIM)} "
        "WHERE queue_name = %s AND status = 'ready' AND priority > %s AND priority < %s "
        "ORDER BY priority {} LIMIT 1)"
    )
    each = f"SELECT %s, {dive.format('ASC')}, {dive.format('DESC')}"
    params: list[Any] = []
    for number, (name, bounds) in enumerate(between.items()):
        params += [number, *[name, *bounds] * 2]
    names = list(between)
    sql = tagged("board", " UNION ALL ".join([each] * len(names)))
    return [(names[number], *ends) for number, *ends in ask(connection, sql, params)]
