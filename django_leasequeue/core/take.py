"""Taking jobs: the one transaction of a claim, under the locks of the rows that it takes.

No claim sorts, waits for a row lock or writes a row that it does not take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.lanes import Lane, as_mark, due_range
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged

__all__ = ["ClaimSettings", "Taken", "Wanted", "give_up", "take"]

USED_UP_ERROR = "Attempts used up before this claim"
UNCLAIMABLE_ERROR = "The database refused to reserve this row"
PAST_EXPIRY_ERROR = "Expired before it was claimed"


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    """What a worker claims with: its name, its lease in seconds, and job types that differ."""

    worker: str
    lease: float
    leases: Mapping[str, float]

    def seconds_for(self, job_type: str) -> float:
        """Return the lease of a job type in seconds."""
        return self.leases.get(job_type, self.lease)


class Wanted(NamedTuple):
    """How many jobs are asked for: `limit` of any kind, then `ahead` of those fit to wait."""

    limit: int
    ahead: int

    @property
    def total(self) -> int:
        """The jobs asked for in all."""
        return self.limit + self.ahead

    def without(self, count: int) -> Wanted:
        """Return what is still wanted after so many jobs."""
        return Wanted(max(0, self.limit - count), self.ahead - max(0, count - self.limit))

    def one(self) -> Wanted:
        """Return what asks for the first job only."""
        return Wanted(1, 0) if self.limit else Wanted(0, 1)


@dataclass(slots=True)
class Taken:
    """What one claim transaction did, known before its COMMIT.

    `others` counts the jobs that it ended; `stopped` tells that it left a due job untaken, `more`
    that it may have left some, which go before those of later lanes.
    """

    token: bytes
    ids: list[int] = field(default_factory=list)
    mark: Any = None
    others: int = 0
    stopped: bool = False
    more: bool = False


def take(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    lane: Lane,
    mark: Any,
    wanted: Wanted,
    settings: ClaimSettings,
    taken: Taken,
) -> None:
    """Reserve what is wanted of a lane's due jobs, from `mark` on, and fill in `taken`.

    Its `ids` are known before they are reserved: those that a refusal was about.
    """
    dialect = dialect_for(connection)
    rows = _lock_due(dialect, cursor, lane, mark, wanted.total)
    found = _sift(rows, wanted.limit)
    taken.ids = [job_id for job_id, _type in found.runnable]
    taken.others = len(found.used_up) + len(found.expired)
    taken.stopped = found.stopped
    taken.more = found.stopped or len(rows) == wanted.total
    if taken.ids or taken.others:
        taken.mark = as_mark(dialect, found.last)
    _end_unclaimed(dialect, cursor, "dead", found.used_up, USED_UP_ERROR)
    _end_unclaimed(dialect, cursor, "cancelled", found.expired, PAST_EXPIRY_ERROR)
    for seconds, ids in _by_lease(found.runnable, settings).items():
        _reserve(dialect, cursor, ids, seconds, settings.worker, taken.token)


def _lock_due(
    dialect: Dialect, cursor: CursorWrapper, lane: Lane, mark: Any, count: int
) -> list[Any]:
    """Lock the lane's first due rows that nobody has locked; return what decides about them."""
    range_, params = due_range(dialect, lane, mark)
    cursor.execute(
        tagged(
            "claim",
            "SELECT id, job_type, attempts >= max_attempts, "
            f"COALESCE(expires_at <= {dialect.now}, 1 = 0), "
            "attempts + 1 < max_attempts AND crashes = 0, "
            f"{dialect.select_moment('available_at')} "
            f"FROM leasequeue_job{dialect.hint('leasequeue_job_claim')} "
            f"WHERE {range_} LIMIT %s{dialect.skip_locked}",
        ),
        [*params, count],
    )
    rows: list[Any] = cursor.fetchall()
    return rows


@dataclass(slots=True)
class _Found:
    """Locked rows by what is to be done with them; `last` is when the last of them was due."""

    runnable: list[tuple[int, str]] = field(default_factory=list)
    used_up: list[int] = field(default_factory=list)
    expired: list[int] = field(default_factory=list)
    last: Any = None
    stopped: bool = False


def _sift(rows: Sequence[Any], limit: int) -> _Found:
    """Sort rows, in order, up to the first that would have to wait and must not."""
    found = _Found()
    for job_id, job_type, used_up, expired, may_wait, available in rows:
        if used_up:
            found.used_up.append(job_id)
        elif expired:
            found.expired.append(job_id)
        elif len(found.runnable) < limit or may_wait:
            found.runnable.append((job_id, job_type))
        else:
            found.stopped = True
            break
        found.last = available
    return found


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


def give_up(connection: BaseDatabaseWrapper, ids: Sequence[int]) -> int:
    """Make jobs dead which the database refuses to reserve; return how many, 0 if that is unknown.

    What was not done after all is met again by the next claim.
    """
    dialect = dialect_for(connection)

    def work(cursor: CursorWrapper) -> int:
        cursor.execute(
            tagged(
                "claim",
                f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} "
                f"WHERE id IN ({marks(ids)}) AND {dialect.aside('status')} = 'ready'"
                f"{dialect.skip_locked}",
            ),
            list(ids),
        )
        locked = [row[0] for row in cursor.fetchall()]
        _end_unclaimed(dialect, cursor, "dead", locked, UNCLAIMABLE_ERROR)
        return len(locked)

    try:
        return run(connection, work)
    except CommitUnknown:
        return 0
