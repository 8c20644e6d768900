"""Parked jobs: of a type that the worker which claimed them did not know, woken by one that does.

A job is woken only by a worker that would run it: its queue is among the worker's, its type and
the version of its payload are known there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lanes import ALL_QUEUES
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged

__all__ = ["wake"]


def wake(
    connection: BaseDatabaseWrapper, known: Mapping[str, int], queues: Sequence[str], limit: int
) -> int:
    """Make up to `limit` parked jobs ready again and return how many.

    `known` has the newest payload version of each job type that is handled, `queues` are names, or
    "*". `available_at`, and with it the job's turn, stays. Waits for no lock.
    """
    ids: list[int] = []
    for version in sorted(set(known.values())):
        types = sorted(name for name, newest in known.items() if newest == version)
        if len(ids) < limit:
            ids += _parked(connection, types, version, queues, limit - len(ids))
    if not ids:
        return 0
    try:
        return run(connection, lambda cursor: _wake(connection, cursor, sorted(ids)))
    except CommitUnknown:
        return 0  # woken or not: the next pass sees which


def _parked(
    connection: BaseDatabaseWrapper,
    types: Sequence[str],
    version: int,
    queues: Sequence[str],
    limit: int,
) -> list[int]:
    """Return parked jobs of these types, looked for without a lock: as a rule there are none."""
    dialect = dialect_for(connection)
    here, names = "", []
    if ALL_QUEUES not in queues:
        here, names = f"AND {dialect.aside('queue_name')} IN ({marks(queues)}) ", list(queues)
    rows = ask(
        connection,
        tagged(
            "wake",
            f"SELECT id FROM leasequeue_job{dialect.hint('leasequeue_job_type')} "
            f"WHERE status = 'parked' AND job_type IN ({marks(types)}) {here}"
            f"AND payload_version <= %s LIMIT {int(limit)}",
        ),
        [*types, *names, version],
    )
    return [row[0] for row in rows]


def _wake(connection: BaseDatabaseWrapper, cursor: CursorWrapper, ids: Sequence[int]) -> int:
    dialect = dialect_for(connection)
    parked = f"{dialect.aside('status')} = 'parked'"
    cursor.execute(
        tagged(
            "wake",
            f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} "
            f"WHERE id IN ({marks(ids)}) AND {parked} ORDER BY id{dialect.skip_locked}",
        ),
        list(ids),
    )
    locked = [row[0] for row in cursor.fetchall()]
    if not locked:
        return 0
    cursor.execute(
        tagged(
            "wake",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET status = 'ready', "
            f"last_error = '', updated_at = {dialect.stamp} "
            f"WHERE id IN ({marks(locked)}) AND {dialect.aside('status')} = 'parked'",
        ),
        locked,
    )
    return len(locked)
