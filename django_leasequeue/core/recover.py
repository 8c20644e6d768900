"""Recover: take back what no worker holds any more, by any worker, without a leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.attempts import record
from django_leasequeue.core.claim import MAX_REFUSALS
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.keys import held_keys
from django_leasequeue.core.lease import Lease
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged
from django_leasequeue.outcomes import Budget, End, Outcome, transition
from django_leasequeue.statuses import Status

__all__ = ["BATCH", "Recovered", "Refusals", "any_expired", "recover_batch"]

BATCH = 100
UNRECOVERABLE_ERROR = "Lease expired; the database refused the record of this attempt"
BACK_ERROR = "Lease expired; returned to queue"
DEAD_ERROR = "Lease expired after final attempt"


class Recovered(NamedTuple):
    """A job taken back: ready again, or dead; `worker` is the one that lost it."""

    job_id: int
    job_type: str
    queue: str
    attempt: int
    worker: str
    status: Status


@dataclass(slots=True)
class Refusals:
    """How many jobs in a row the database has refused to take back; kept from batch to batch."""

    in_a_row: int = 0


def any_expired(connection: BaseDatabaseWrapper) -> bool:
    """Tell, without a lock and in one statement, whether a lease has run out."""
    dialect = dialect_for(connection)
    sql = (
        f"SELECT 1 FROM leasequeue_job{dialect.hint('leasequeue_job_recover')} "
        f"WHERE status = 'reserved' AND lease_until <= {dialect.now} LIMIT 1"
    )
    return bool(ask(connection, tagged("recover", sql)))


def recover_batch(
    connection: BaseDatabaseWrapper, limit: int = BATCH, refusals: Refusals | None = None
) -> list[Recovered]:
    """Recover up to `limit` expired leases, oldest first, and return what was recovered.

    Each becomes ready now, or dead when its attempts or crashes are used up, with an attempt row
    `expired` that names the worker. Waits for no lock; a full batch means that there may be more.
    A job that the database refuses to take back is dead; raises its error when it refuses more
    than a few in a row.
    """
    refusals = refusals or Refusals()
    try:
        return _recover_in_one(connection, limit, refusals)
    except (DataError, IntegrityError):
        # One row cannot be taken back (its attempt is on record already, say): find it.
        return _one_by_one(connection, limit, refusals)


def _recover_in_one(
    connection: BaseDatabaseWrapper, limit: int, refusals: Refusals
) -> list[Recovered]:
    try:
        found = run(connection, lambda cursor: _recover(connection, cursor, limit))
    except CommitUnknown:
        return []  # done or to be done: the next pass sees which
    if found:
        refusals.in_a_row = 0
    return found


def _one_by_one(connection: BaseDatabaseWrapper, limit: int, refusals: Refusals) -> list[Recovered]:
    recovered: list[Recovered] = []
    for _ in range(limit):
        try:
            found = _recover_in_one(connection, 1, refusals)
        except (DataError, IntegrityError):
            refusals.in_a_row += 1
            if refusals.in_a_row > MAX_REFUSALS:  # not the rows' fault
                if recovered:
                    break  # the caller is to hear of these; the next batch raises
                raise
            found = _give_up_first(connection)
        if not found:
            break
        recovered += found
    return recovered


def _give_up_first(connection: BaseDatabaseWrapper) -> list[Recovered]:
    try:
        return run(connection, lambda cursor: _give_up(connection, cursor))
    except CommitUnknown:
        return []  # as above


def _give_up(connection: BaseDatabaseWrapper, cursor: CursorWrapper) -> list[Recovered]:
    """Make the first expired job dead, without an attempt row and without a burial."""
    dialect = dialect_for(connection)
    jobs, _leases, _keys = _expired(dialect, cursor, 1)
    if not jobs:
        return []
    cursor.execute(
        tagged(
            "recover",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET status = 'dead', "
            f"lease_until = NULL, lease_token = NULL, live_key = NULL, last_error = %s, "
            f"finished_at = {dialect.stamp}, updated_at = {dialect.stamp} WHERE id = %s "
            f"AND {dialect.aside('status')} = 'reserved' AND lease_until <= {dialect.now}",
        ),
        [UNRECOVERABLE_ERROR, jobs[0].job_id],
    )
    return [jobs[0]._replace(status=Status.DEAD)]


def _expired(
    dialect: Dialect, cursor: CursorWrapper, limit: int
) -> tuple[list[Recovered], list[Lease], dict[int, str | None]]:
    """Lock expired jobs; return them, their leases, and the live keys of those that will die."""
    cursor.execute(
        tagged(
            "recover",
            "SELECT id, lease_token, job_type, queue_name, leased_by, live_key, attempts, "
            "max_attempts, crashes, max_crashes, releases "
            f"FROM leasequeue_job{dialect.hint('leasequeue_job_recover')} "
            f"WHERE status = 'reserved' AND lease_until <= {dialect.now} "
            f"ORDER BY lease_until, finished_at, id LIMIT %s{dialect.skip_locked}",
        ),
        [limit],
    )
    jobs: list[Recovered] = []
    leases: list[Lease] = []
    live_keys: dict[int, str | None] = {}
    for job_id, token, job_type, queue, worker, live_key, *counters in cursor.fetchall():
        budget = Budget(*counters)
        status = transition(Outcome(End.EXPIRED), budget).status
        if token is not None:  # NULL: made by somebody's SQL, not by a claim; no attempt to record
            leases.append(Lease(job_id, bytes(token)))
        if status is Status.DEAD:
            live_keys[job_id] = live_key
        jobs.append(Recovered(job_id, job_type, queue, budget.attempts, worker, status))
    return jobs, leases, live_keys


def _recover(connection: BaseDatabaseWrapper, cursor: CursorWrapper, limit: int) -> list[Recovered]:
    dialect = dialect_for(connection)
    jobs, leases, live_keys = _expired(dialect, cursor, limit)
    held = held_keys(dialect, cursor, live_keys)
    found: dict[Status, list[Recovered]] = {}
    for job in jobs:
        if job.job_id not in held:
            found.setdefault(job.status, []).append(job)
    for status, recovered in found.items():
        ids = [job.job_id for job in recovered]
        recorded = [lease for lease in leases if lease.job_id in set(ids)]
        text = DEAD_ERROR if status is Status.DEAD else BACK_ERROR
        if recorded:
            record(connection, cursor, recorded, End.EXPIRED, text=text)
        _take_back(dialect, cursor, sorted(ids), status, text)
    return [job for recovered in found.values() for job in recovered]


def _take_back(
    dialect: Dialect, cursor: CursorWrapper, ids: Sequence[int], status: Status, text: str
) -> None:
    if status is Status.DEAD:
        # Buried by a worker that knows the type: this one may not know whether it has a hook.
        change = f"lease_until = {dialect.stamp}, live_key = NULL, finished_at = {dialect.stamp}"
    else:
        change = f"lease_until = NULL, available_at = {dialect.stamp}"
    cursor.execute(
        tagged(
            "recover",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET status = %s, {change}, "
            "lease_token = NULL, releases = 0, crashes = crashes + 1, last_error = %s, "
            f"updated_at = {dialect.stamp} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} = 'reserved' "
            f"AND {dialect.aside('lease_until')} <= {dialect.now}",
        ),
        [status.value, text, *ids],
    )
