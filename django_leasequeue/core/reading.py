"""Reading claimed jobs: payloads by primary key, and what a lost COMMIT answer came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged

__all__ = ["look_up", "read_jobs"]

_LOOK_UPS = 8

_COLUMNS = (
    "id, claims, job_type, queue_name, payload, attempts, max_attempts, crashes, idempotency_key, "
    "signature, timeout, {created_at}, context, checkpoint, leased_by, live_key, "
    "payload_version, priority, schedule, {tick_at}"
)


def look_up(
    connection: BaseDatabaseWrapper, ids: Sequence[int], token: bytes
) -> tuple[list[int], list[int]]:
    """Return which of `ids` carry `token`, after a COMMIT whose answer was lost, and which may.

    A row that is still locked belongs to a COMMIT under way: it is asked again, bounded.
    """
    mine: list[int] = []
    pending = sorted(ids)
    for tried in range(_LOOK_UPS):
        if not pending:
            break
        try:
            tokens = run(connection, _token_reader(connection, pending))
        except (CommitUnknown, DatabaseError, InterfaceError):
            tokens = {}
        mine += [job_id for job_id, found in tokens.items() if found == token]
        pending = [job_id for job_id in pending if job_id not in tokens]
        if pending:
            time.sleep(0.02 * 2**tried)
    return [job_id for job_id in ids if job_id in mine], pending


def _token_reader(
    connection: BaseDatabaseWrapper, ids: Sequence[int]
) -> Callable[[CursorWrapper], dict[int, bytes | None]]:
    dialect = dialect_for(connection)

    def read(cursor: CursorWrapper) -> dict[int, bytes | None]:
        cursor.execute(
            tagged(
                "claim",
                f"SELECT id, lease_token FROM leasequeue_job{dialect.hint('PRIMARY')} "
                f"WHERE id IN ({marks(ids)}) ORDER BY id{dialect.skip_locked}",
            ),
            list(ids),
        )
        return {job_id: token and bytes(token) for job_id, token in cursor.fetchall()}

    return read


def read_jobs(
    connection: BaseDatabaseWrapper,
    ids: Sequence[int],
    token: bytes,
    status: str,
    seconds_for: Callable[[str], float],
) -> list[Claimed]:
    """Return the jobs among `ids` that have `status` and `token`, in the order of `ids`.

    Their leases are of as many seconds as `seconds_for` their job type tells.
    """
    dialect = dialect_for(connection)
    times = {name: dialect.select_moment(name) for name in ("created_at", "tick_at")}
    columns = _COLUMNS.format(**times)
    rows = ask(
        connection,
        tagged(
            "read",
            f"SELECT {columns} FROM leasequeue_job{dialect.hint('PRIMARY')} "
            f"WHERE id IN ({marks(ids)}) AND {dialect.aside('status')} = %s "
            f"AND lease_token = {dialect.token_mark}",
        ),
        [*ids, status, dialect.token_param(token)],
    )
    found = {row[0]: _claimed(dialect, row, token, seconds_for(row[2])) for row in rows}
    return [found[job_id] for job_id in ids if job_id in found]


def _claimed(dialect: Dialect, row: Sequence[Any], token: bytes, seconds: float) -> Claimed:
    return Claimed(
        lease=Lease(row[0], token),
        seconds=seconds,
        number=row[1],
        job_type=row[2],
        queue=row[3],
        payload=row[4],
        attempt=row[5],
        max_attempts=row[6],
        crashes=row[7],
        idempotency_key=row[8],
        signature=row[9],
        timeout=row[10],
        enqueued_at=dialect.as_utc(row[11]),
        context=row[12],
        checkpoint=row[13],
        leased_by=row[14],
        live_key=row[15],
        payload_version=row[16],
        priority=row[17],
        schedule=row[18],
        tick_at=dialect.as_utc(row[19]),
    )
