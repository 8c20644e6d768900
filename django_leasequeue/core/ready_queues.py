"""Which queues have ready jobs, and of which priorities: dives into the claim index.

Many dives are sub-queries of one statement. Their bounds are constants: no server uses an index
for a range that begins at another sub-query's answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["ReadyQueues", "priorities_of"]

_INDEX = "leasequeue_job_claim"
#: Queues that one statement asks for.
_TOGETHER = 20
#: Names of queues that have no job left are kept for so long.
_KEPT_SECONDS = 60.0
_PAUSED = "SELECT COUNT(*) FROM leasequeue_queue WHERE name = %s AND paused_at IS NOT NULL"


@dataclass(slots=True)
class ReadyQueues:
    """All queues that have jobs: their names are remembered, and looked between for new ones."""

    _names: list[str] = field(default_factory=list)
    _walk_at: float = 0.0

    def read(self, connection: BaseDatabaseWrapper) -> list[tuple[str, list[int]]]:
        """Return what `priorities_of` returns of all queues that have jobs of any status.

        One statement for twenty queues known before; a new one costs a walk over all of them.
        """
        if time.monotonic() < self._walk_at:
            found, complete = _look(connection, self._names, between=True)
            if complete:
                return found
        self._names = _walk(connection)
        self._walk_at = time.monotonic() + _KEPT_SECONDS
        return priorities_of(connection, self._names)


def priorities_of(
    connection: BaseDatabaseWrapper, queues: Sequence[str]
) -> list[tuple[str, list[int]]]:
    """Return each queue with the priorities of its ready jobs, largest first.

    Paused queues are left out.
    """
    return _look(connection, queues, between=False)[0]


def _look(
    connection: BaseDatabaseWrapper, names: Sequence[str], *, between: bool
) -> tuple[list[tuple[str, list[int]]], bool]:
    """Return what `priorities_of` returns; and whether there is no name `between` these."""
    found: list[tuple[str, list[int]]] = []
    before: str | None = None
    for start in range(0, len(names) or 1, _TOGETHER):
        part = names[start : start + _TOGETHER]
        gaps: list[tuple[str | None, str | None]] = []
        if between:
            gaps += zip([before, *part], part, strict=False)
            before = part[-1] if part else None
            gaps += [(before, None)] if start + _TOGETHER >= len(names) else []
        rows, complete = _ask(connection, part, gaps)
        if not complete:
            return [], False
        for queue, first, paused in rows:
            if not paused:
                found.append((queue, list(_down_from(connection, queue, first))))
    return found, True


def _ask(
    connection: BaseDatabaseWrapper,
    names: Sequence[str],
    gaps: Sequence[tuple[str | None, str | None]],
) -> tuple[Iterator[Any], bool]:
    """Return (queue, largest ready priority, is it paused) of each; and whether gaps are empty."""
    pair = f"({_priority(connection)}), ({_PAUSED})"
    dives = [pair] * len(names)
    dives += [f"({_dive(connection, after is not None, end is not None)})" for after, end in gaps]
    params = [name for name in names for _ in range(2)]
    params += [bound for gap in gaps for bound in gap if bound is not None]
    if not dives:
        return iter(()), True
    ((*row,),) = ask(connection, tagged("lanes", f"SELECT {', '.join(dives)}"), params)
    of_names, of_gaps = row[: 2 * len(names)], row[2 * len(names) :]
    rows = zip(names, of_names[::2], of_names[1::2], strict=True)
    return rows, all(name is None for name in of_gaps)


def _dive(connection: BaseDatabaseWrapper, after: bool, before: bool) -> str:
    """Return the SELECT of the first name in a gap; takes its ends, those that there are."""
    bounds = ["queue_name > %s"] * after + ["queue_name < %s"] * before
    where = f"WHERE {' AND '.join(bounds)} " if bounds else ""
    hint = dialect_for(connection).hint(_INDEX)
    return f"SELECT queue_name FROM leasequeue_job{hint} {where}ORDER BY queue_name LIMIT 1"


def _priority(connection: BaseDatabaseWrapper, below: str = "") -> str:
    """Return the SELECT of a queue's largest priority; takes the queue, and what it is below."""
    return (
        f"SELECT priority FROM leasequeue_job{dialect_for(connection).hint(_INDEX)} "
        f"WHERE queue_name = %s AND status = 'ready' {below}ORDER BY priority DESC LIMIT 1"
    )


def _walk(connection: BaseDatabaseWrapper) -> list[str]:
    names: list[str] = []
    while True:
        sql = _dive(connection, after=bool(names), before=False)
        rows = ask(connection, tagged("lanes", sql), names[-1:])
        if not rows:
            return names
        names.append(rows[0][0])


def _down_from(connection: BaseDatabaseWrapper, queue: str, priority: int | None) -> Iterator[int]:
    """Yield the priority and those below it, one dive each."""
    sql = tagged("lanes", _priority(connection, below="AND priority < %s "))
    while priority is not None:
        yield priority
        rows = ask(connection, sql, [queue, priority])
        priority = rows[0][0] if rows else None
