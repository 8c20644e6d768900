"""Claim: lock due jobs of one lane, stamp them with a fresh token, commit, then read payloads.

No claim sorts, waits for a row lock or touches a row that it does not take.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.lanes import Lane, Lanes, as_mark, due_range
from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged

__all__ = ["ClaimSettings", "claim", "read_claimed", "read_jobs"]

USED_UP_ERROR = "Attempts used up before this claim"
UNCLAIMABLE_ERROR = "The database refused to reserve this row"
PAST_EXPIRY_ERROR = "Expired before it was claimed"
_ROUNDS = 200  # of jobs that all came to nothing, before other lanes have their turn
_LOOK_UPS = 8

_COLUMNS = (
    "id, claims, job_type, queue_name, payload, attempts, max_attempts, crashes, idempotency_key, "
    "signature, timeout, {created_at}, context, checkpoint, leased_by, live_key"
)


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    """What a worker claims with: its name, its lease in seconds, and job types that differ."""

    worker: str
    lease: float
    leases: Mapping[str, float]

    def seconds_for(self, job_type: str) -> float:
        """Return the lease of a job type in seconds."""
        return self.leases.get(job_type, self.lease)


@dataclass(slots=True)
class _Taken:
    """What one claim transaction did, known before its COMMIT."""

    token: bytes
    ids: list[int]
    mark: Any
    others: int


def claim(
    connection: BaseDatabaseWrapper, lanes: Lanes, limit: int, settings: ClaimSettings
) -> list[Claimed]:
    """Claim up to `limit` due jobs of the first lane that has any and return them in order.

    Afterwards each is `reserved` under a token that no other claim ever had, attempts and claims
    one higher, until its lease from the moment of the claim. Jobs met on the way whose attempts
    are used up are dead, those past `expires_at` cancelled. A claim whose COMMIT answer was lost
    is looked up, so that what was claimed is returned.
    """
    for lane in lanes.ordered(connection):
        for _round in range(_ROUNDS):
            if not lanes.has_due(connection, lane):
                break
            taken = _claim_lane(connection, lanes, lane, limit, settings)
            if taken.ids:
                lanes.claimed(lane, taken.mark, full=len(taken.ids) == limit)
                return read_claimed(connection, taken.ids, taken.token, settings)
            lanes.empty(lane)
            if not taken.others:
                break
    return []


def _claim_lane(
    connection: BaseDatabaseWrapper,
    lanes: Lanes,
    lane: Lane,
    limit: int,
    settings: ClaimSettings,
) -> _Taken:
    taken = _Taken(secrets.token_bytes(16), [], None, 0)

    def work(cursor: CursorWrapper) -> None:
        # A fresh token per try: an earlier try's COMMIT may have been applied.
        taken.token, taken.ids, taken.others = secrets.token_bytes(16), [], 0
        _take(connection, cursor, lane, lanes.mark_of(lane), limit, settings, taken)

    try:
        run(connection, work)
    except CommitUnknown:
        taken.ids = _look_up(connection, taken.ids, taken.token)
    except (DataError, IntegrityError):
        # One row cannot be claimed (a counter at its end, put there by plain SQL): find it.
        if limit > 1:
            return _claim_lane(connection, lanes, lane, 1, settings)
        taken.ids, taken.others = [], _give_up(connection, lane, lanes.mark_of(lane))
    return taken


def _give_up(connection: BaseDatabaseWrapper, lane: Lane, mark: Any) -> int:
    """Make the lane's first due job dead, which the database refuses to reserve; return 1, or 0."""
    dialect = dialect_for(connection)
    range_, params = due_range(dialect, lane, mark)

    def work(cursor: CursorWrapper) -> int:
        cursor.execute(
            tagged(
                "claim",
                f"SELECT id FROM leasequeue_job{dialect.hint('leasequeue_job_claim')} "
                f"WHERE {range_} LIMIT 1{dialect.skip_locked}",
            ),
            params,
        )
        ids = [row[0] for row in cursor.fetchall()]
        _end_unclaimed(dialect, cursor, "dead", ids, UNCLAIMABLE_ERROR)
        return len(ids)

    return run(connection, work)


def _take(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    lane: Lane,
    mark: Any,
    limit: int,
    settings: ClaimSettings,
    taken: _Taken,
) -> None:
    dialect = dialect_for(connection)
    range_, params = due_range(dialect, lane, mark)
    cursor.execute(
        tagged(
            "claim",
            "SELECT id, job_type, attempts >= max_attempts, "
            f"COALESCE(expires_at <= {dialect.now}, 1 = 0), "
            f"{dialect.select_moment('available_at')} "
            f"FROM leasequeue_job{dialect.hint('leasequeue_job_claim')} "
            f"WHERE {range_} LIMIT %s{dialect.skip_locked}",
        ),
        [*params, limit],
    )
    rows = cursor.fetchall()
    used_up = [row[0] for row in rows if row[2]]
    expired = [row[0] for row in rows if row[3] and not row[2]]
    runnable = [(row[0], row[1]) for row in rows if not row[2] and not row[3]]
    _end_unclaimed(dialect, cursor, "dead", used_up, USED_UP_ERROR)
    _end_unclaimed(dialect, cursor, "cancelled", expired, PAST_EXPIRY_ERROR)
    for seconds, ids in _by_lease(runnable, settings).items():
        _reserve(dialect, cursor, ids, seconds, settings.worker, taken.token)
    taken.ids = [job_id for job_id, _type in runnable]
    taken.others = len(used_up) + len(expired)
    if rows:
        taken.mark = as_mark(dialect, rows[-1][4])


def _by_lease(
    runnable: Sequence[tuple[int, str]], settings: ClaimSettings
) -> dict[float, list[int]]:
    groups: dict[float, list[int]] = {}
    for job_id, job_type in runnable:
        groups.setdefault(settings.seconds_for(job_type), []).append(job_id)
    return {seconds: sorted(ids) for seconds, ids in groups.items()}


def _reserve(
    dialect: Dialect,
    cursor: CursorWrapper,
    ids: Sequence[int],
    seconds: float,
    worker: str,
    token: bytes,
) -> None:
    cursor.execute(
        tagged(
            "claim",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET status = 'reserved', "
            f"attempts = attempts + 1, claims = claims + 1, lease_token = {dialect.token_mark}, "
            "leased_by = %s, "
            f"lease_until = {dialect.later}, claimed_at = {dialect.stamp}, "
            f"updated_at = {dialect.stamp} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} = 'ready'",
        ),
        [dialect.token_param(token), worker, dialect.span(seconds), *ids],
    )


def _end_unclaimed(
    dialect: Dialect, cursor: CursorWrapper, status: str, ids: Sequence[int], error: str
) -> None:
    """Settle locked jobs that will not run. A dead one waits for its burial from now on."""
    if not ids:
        return
    burial = dialect.stamp if status == "dead" else "NULL"
    cursor.execute(
        tagged(
            "claim",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET status = %s, last_error = %s, "
            f"live_key = NULL, lease_until = {burial}, finished_at = {dialect.stamp}, "
            f"updated_at = {dialect.stamp} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} = 'ready'",
        ),
        [status, error, *sorted(ids)],
    )


def _look_up(connection: BaseDatabaseWrapper, ids: Sequence[int], token: bytes) -> list[int]:
    """Return which of `ids` carry `token`, after a COMMIT whose answer was lost.

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
    return [job_id for job_id in ids if job_id in mine]


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


def read_claimed(
    connection: BaseDatabaseWrapper,
    ids: Sequence[int],
    token: bytes,
    settings: ClaimSettings,
) -> list[Claimed]:
    """Return the jobs among `ids` that are reserved under `token`, in the order of `ids`."""
    jobs = read_jobs(connection, ids, token, "reserved")
    return [replace(job, seconds=settings.seconds_for(job.job_type)) for job in jobs]


def read_jobs(
    connection: BaseDatabaseWrapper, ids: Sequence[int], token: bytes, status: str
) -> list[Claimed]:
    """Return the jobs among `ids` that have `status` and `token`, in the order of `ids`."""
    dialect = dialect_for(connection)
    columns = _COLUMNS.format(created_at=dialect.select_moment("created_at"))
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
    found = {row[0]: _claimed(dialect, row, token) for row in rows}
    return [found[job_id] for job_id in ids if job_id in found]


def _claimed(dialect: Dialect, row: Sequence[Any], token: bytes) -> Claimed:
    return Claimed(
        lease=Lease(row[0], token),
        seconds=0.0,
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
    )
