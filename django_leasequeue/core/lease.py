"""The lease: what a claim gives, how it is prolonged, and how it stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged
from django_leasequeue.exceptions import LeaseLost

__all__ = [
    "Claimed",
    "Lease",
    "Renewal",
    "Standing",
    "ends_on_record",
    "fence",
    "hold_within",
    "lock_within",
    "renew",
    "standing",
]


class Lease(NamedTuple):
    """The exclusive right to a job: whoever cannot show its token, unexpired, writes nothing."""

    job_id: int
    token: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job as it was when this worker claimed it; `payload` is JSON text, `seconds` its lease."""

    lease: Lease
    seconds: float
    number: int
    job_type: str
    queue: str
    payload: str = field(repr=False)
    attempt: int
    max_attempts: int
    crashes: int
    idempotency_key: str
    signature: str
    timeout: float | None
    enqueued_at: datetime | None
    context: str = field(repr=False)
    checkpoint: str | None = field(repr=False)
    leased_by: str
    live_key: str | None
    payload_version: int = 1
    priority: int = 0
    schedule: str = ""
    tick_at: datetime | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # On its way to a child: what a frozen dataclass does by itself takes ten times as long.
        return Claimed, _values(self)

    @property
    def job_id(self) -> int:
        """The job's id."""
        return self.lease.job_id


_values = attrgetter(*(item.name for item in fields(Claimed)))


class Renewal(NamedTuple):
    """What became of leases that were to be renewed.

    `pending` rows were locked by somebody: neither renewed nor lost, try again soon.
    """

    renewed: tuple[Lease, ...]
    lost: tuple[Lease, ...]
    pending: tuple[Lease, ...]


class Standing(Enum):
    """How a lease stands, by the database's word."""

    HELD = "held"  # this token is the job's, unexpired
    COMPLETED = "completed"  # the handler has completed the job during this very attempt
    CANCELLED = "cancelled"  # an operator cancelled it, likewise
    LOST = "lost"  # it expired, or whatever else ended it


def fence(
    dialect: Dialect, leases: Sequence[Lease], status: str = "= 'reserved'"
) -> tuple[str, list[Any]]:
    """Return the condition of every write by the holder of `leases`, and its parameters."""
    tokens = sorted({lease.token for lease in leases})
    condition = (
        f"{dialect.aside('status')} {status} "
        f"AND lease_token IN ({', '.join([dialect.token_mark] * len(tokens))}) "
        f"AND {dialect.aside('lease_until')} > {dialect.now}"
    )
    return condition, [dialect.token_param(token) for token in tokens]


#: A lease is held on a reserved job, or on a dead one that is being buried.
_HELD = "IN ('reserved', 'dead')"


def renew(connection: BaseDatabaseWrapper, leases: Sequence[Lease], seconds: float) -> Renewal:
    """Prolong the leases that are held and unexpired to `seconds` from now.

    Afterwards every lease in `renewed` runs for `seconds` from a moment within this call. An
    expired lease is never revived. Waits for no row lock.
    """
    if not leases:
        return Renewal((), (), ())
    try:
        renewed = run(connection, lambda cursor: _renew(connection, cursor, leases, seconds))
    except CommitUnknown:
        # Either way no harm is done: ask which leases still stand and renew again next time.
        renewed = set()
    missing = [lease for lease in leases if lease not in renewed]
    held = _still_held(connection, missing)
    return Renewal(
        tuple(lease for lease in leases if lease in renewed),
        tuple(lease for lease in missing if lease not in held),
        tuple(lease for lease in missing if lease in held),
    )


def hold_within(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, lease: Lease, seconds: float
) -> None:
    """Lock a held job's row inside the caller's transaction and prolong its lease.

    The new deadline counts from now, and is seen by others at the commit. Raises LeaseLost when
    the lease is not held any more.
    """
    dialect = dialect_for(connection)
    held, tokens = fence(dialect, [lease])
    cursor.execute(
        tagged(
            "hold",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} "
            f"SET lease_until = {dialect.later} WHERE id = %s AND {held}",
        ),
        [dialect.span(seconds), lease.job_id, *tokens],
    )
    if cursor.rowcount != 1:
        raise LeaseLost(f"job {lease.job_id}: the lease was lost before its effects")


def lock_within(connection: BaseDatabaseWrapper, lease: Lease) -> None:
    """Lock a held job's row until the atomic block ends whose first statement this is.

    Writes nothing. Nobody else can end the lease meanwhile. The UPDATE of `hold_within` locks it,
    too, and costs an entry in each index. Raises LeaseLost when the lease is not held any more.
    """
    dialect = dialect_for(connection)
    held, tokens = fence(dialect, [lease])
    sql = tagged(
        "hold",
        f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} "
        f"WHERE id = %s AND {held}{dialect.wait_locked}",
    )
    if not dialect.read_first(connection, sql, [lease.job_id, *tokens]):
        raise LeaseLost(f"job {lease.job_id}: the lease was lost before its effects")


def _renew(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    leases: Sequence[Lease],
    seconds: float,
) -> set[Lease]:
    dialect = dialect_for(connection)
    wanted = set(leases)
    ids = sorted({lease.job_id for lease in leases})
    cursor.execute(
        tagged(
            "renew",
            f"SELECT id, lease_token FROM leasequeue_job{dialect.hint('PRIMARY')} "
            f"WHERE id IN ({marks(ids)}) AND {dialect.aside('status')} {_HELD} "
            f"AND {dialect.aside('lease_until')} > {dialect.now} "
            f"ORDER BY id{dialect.skip_locked}",
        ),
        ids,
    )
    locked = {Lease(job_id, bytes(token)) for job_id, token in cursor.fetchall() if token}
    mine = sorted(locked & wanted)
    if not mine:
        return set()
    held, tokens = fence(dialect, mine, _HELD)
    cursor.execute(
        tagged(
            "renew",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} "
            f"SET lease_until = {dialect.later}, updated_at = {dialect.stamp} "
            f"WHERE id IN ({marks(mine)}) AND {held}",
        ),
        [dialect.span(seconds), *(lease.job_id for lease in mine), *tokens],
    )
    # A lease that ended between the two statements: none counts as renewed, all are asked again.
    return set(mine) if cursor.rowcount == len(mine) else set()


def standing(connection: BaseDatabaseWrapper, leases: Sequence[Lease]) -> dict[Lease, Standing]:
    """Return how each lease stands now, by plain reads that wait for no lock.

    A dead job's burial is HELD as a reserved job is; once cancelled it is LOST, for a burial is
    no attempt. COMPLETED and CANCELLED are final, whatever becomes of the job later.
    """
    held = _still_held(connection, leases)
    # In this order: what had ended before the first read is on record before the second.
    ended = ends_on_record(connection, [lease for lease in leases if lease not in held])
    return {
        lease: Standing.HELD if lease in held else _STANDINGS.get(ended.get(lease), Standing.LOST)
        for lease in leases
    }


_STANDINGS: dict[str | None, Standing] = {
    "completed": Standing.COMPLETED,
    "skipped": Standing.COMPLETED,
    "cancelled": Standing.CANCELLED,
}


def _still_held(connection: BaseDatabaseWrapper, leases: Sequence[Lease]) -> set[Lease]:
    """Return the leases that are held: unexpired, or with a row that somebody has locked.

    A handler's own transaction may have prolonged the lease, which is seen at its commit only;
    until then its lock keeps everybody from the job.
    """
    if not leases:
        return set()
    dialect = dialect_for(connection)
    ids = sorted({lease.job_id for lease in leases})
    sql = (
        f"SELECT id, lease_token, {dialect.aside('lease_until')} > {dialect.now} "
        f"FROM leasequeue_job{dialect.hint('PRIMARY')} "
        f"WHERE id IN ({marks(ids)}) AND {dialect.aside('status')} {_HELD}"
    )
    rows = ask(connection, tagged("standing", sql), ids)
    mine = {Lease(row[0], bytes(row[1])): bool(row[2]) for row in rows if row[1]}
    held = {lease for lease in leases if mine.get(lease)}
    expired = [lease for lease in leases if mine.get(lease) is False]
    return held | _locked(connection, expired)


def _locked(connection: BaseDatabaseWrapper, leases: Sequence[Lease]) -> set[Lease]:
    """Return those whose row somebody has locked at this moment; waits for none."""
    if not leases:
        return set()
    dialect = dialect_for(connection)
    ids = sorted({lease.job_id for lease in leases})
    sql = (
        f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} "
        f"WHERE id IN ({marks(ids)}) ORDER BY id{dialect.skip_locked}"
    )

    def free(cursor: CursorWrapper) -> set[int]:
        cursor.execute(tagged("standing", sql), ids)
        return {row[0] for row in cursor.fetchall()}

    try:
        unlocked = run(connection, free)
    except CommitUnknown:
        return set(leases)  # nothing was to be written: the next look sees more
    return {lease for lease in leases if lease.job_id not in unlocked}


def ends_on_record(connection: BaseDatabaseWrapper, leases: Collection[Lease]) -> dict[Lease, str]:
    """Return the outcome of each of these attempts that is on record.

    Reads no other attempt of the jobs, which may have had thousands.
    """
    if not leases:
        return {}
    dialect = dialect_for(connection)
    ids = sorted({lease.job_id for lease in leases})
    tokens = sorted({lease.token for lease in leases})
    sql = (
        "SELECT job_id, token, outcome FROM leasequeue_jobattempt"
        f"{dialect.hint('leasequeue_attempt_token')} WHERE job_id IN ({marks(ids)}) "
        f"AND token IN ({', '.join([dialect.token_mark] * len(tokens))})"
    )
    params = [*ids, *map(dialect.token_param, tokens)]
    rows = ask(connection, tagged("standing", sql), params)
    return {Lease(job_id, bytes(token)): outcome for job_id, token, outcome in rows}
