"""Bury: give each dead job's `failed` hook its turn, at least once per death, at most three times.

A dead job with a deadline in the past waits for its burial; taking it draws a fresh token, as a
claim does, so that two workers never run the same hook at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.reading import read_jobs
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged

__all__ = ["MAX_TRIES", "any_unburied", "close_burial", "postpone_burial", "take_burials"]

MAX_TRIES = 3
#: Rows looked at in one go; hooks are run one at a time, each under a lease of its own.
_LIMIT = 100


def any_unburied(connection: BaseDatabaseWrapper) -> bool:
    """Tell, without a lock and in one statement, whether a dead job of any type waits."""
    dialect = dialect_for(connection)
    sql = (
        f"SELECT 1 FROM leasequeue_job{dialect.hint('leasequeue_job_recover')} "
        f"WHERE status = 'dead' AND lease_until <= {dialect.now} LIMIT 1"
    )
    return bool(ask(connection, tagged("bury", sql)))


def take_burials(
    connection: BaseDatabaseWrapper,
    *,
    with_hook: Collection[str],
    without_hook: Collection[str],
    worker: str,
    seconds: float,
) -> list[Claimed]:
    """Take a dead job that waits for its burial and return it if there is one.

    Jobs of types in `without_hook`, and those taken three times before, are closed here. The
    returned job is this worker's for `seconds`, or as long as it is renewed: then close or
    postpone it.
    """
    types = sorted({*with_hook, *without_hook})
    if not types:
        return []
    token = secrets.token_bytes(16)
    hooked = frozenset(with_hook)

    def work(cursor: CursorWrapper) -> tuple[list[int], bool]:
        return _take(connection, cursor, types, hooked, token, worker, seconds)

    ids: list[int] = []
    more = True
    while more and not ids:
        try:
            ids, more = run(connection, work)
        except CommitUnknown:
            return []  # taken or not: the deadline brings it back
    return read_jobs(connection, ids, token, "dead", lambda _type: seconds) if ids else []


def _take(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    types: list[str],
    hooked: frozenset[str],
    token: bytes,
    worker: str,
    seconds: float,
) -> tuple[list[int], bool]:
    """Take one burial, or close those that need none; tell also whether there may be more."""
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "bury",
            f"SELECT id, job_type, bury_tries FROM leasequeue_job"
            f"{dialect.hint('leasequeue_job_recover')} "
            f"WHERE status = 'dead' AND lease_until <= {dialect.now} "
            f"AND job_type IN ({marks(types)}) "
            f"ORDER BY lease_until, finished_at, id LIMIT {_LIMIT}{dialect.skip_locked}",
        ),
        types,
    )
    rows = cursor.fetchall()
    waiting = [row[0] for row in rows if row[1] in hooked and row[2] < MAX_TRIES]
    to_close = sorted(row[0] for row in rows if row[0] not in waiting)
    if to_close:
        _write(connection, cursor, "lease_until = NULL, lease_token = NULL", [], to_close)
    if waiting:
        change = (
            f"lease_until = {dialect.later}, lease_token = {dialect.token_mark}, "
            "leased_by = %s, bury_tries = bury_tries + 1"
        )
        params = [dialect.span(seconds), dialect.token_param(token), worker]
        _write(connection, cursor, change, params, waiting[:1])
    return waiting[:1], len(rows) == _LIMIT


def _write(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    change: str,
    params: list[Any],
    ids: list[int],
) -> None:
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "bury",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET {change}, "
            f"updated_at = {dialect.stamp} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} = 'dead'",
        ),
        [*params, *ids],
    )


def close_burial(connection: BaseDatabaseWrapper, lease: Lease) -> bool:
    """Note that the hook ran. Returns False when another worker has taken the burial since."""
    return _end(connection, lease, "lease_until = NULL", [])


def postpone_burial(
    connection: BaseDatabaseWrapper, lease: Lease, seconds: float, *, tried: bool = True
) -> bool:
    """Give the burial back after a hook that failed, to be taken again in `seconds`.

    One whose hook was not `tried` keeps its number of tries.
    """
    dialect = dialect_for(connection)
    change = f"lease_until = {dialect.later}"
    if not tried:
        change += ", bury_tries = bury_tries - 1"
    return _end(connection, lease, change, [dialect.span(seconds)])


def _end(connection: BaseDatabaseWrapper, lease: Lease, change: str, params: list[Any]) -> bool:
    dialect = dialect_for(connection)

    def work(cursor: CursorWrapper) -> bool:
        cursor.execute(
            tagged(
                "bury",
                f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET {change}, "
                f"lease_token = NULL, updated_at = {dialect.stamp} WHERE id = %s "
                f"AND {dialect.aside('status')} = 'dead' AND lease_token = {dialect.token_mark} "
                f"AND {dialect.aside('lease_until')} > {dialect.now}",
            ),
            [*params, lease.job_id, dialect.token_param(lease.token)],
        )
        return bool(cursor.rowcount == 1)

    try:
        return run(connection, work)
    except CommitUnknown:
        return False
