"""Settle: write how attempts ended, many at once, each under its own fence.

Rows are locked by their key with SKIP LOCKED, so control never waits for a row lock; the writes
repeat token, status and unexpired deadline in their own WHERE.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.codec import clean_text
from django_leasequeue.core.attempts import Fate, fates, insertion, record_outcome
from django_leasequeue.core.dialect import Dialect, dialect_for, trouble
from django_leasequeue.core.keys import held_keys
from django_leasequeue.core.lease import Lease, fence
from django_leasequeue.core.plainer import plainer
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged
from django_leasequeue.exceptions import LeaseLost
from django_leasequeue.outcomes import (
    Budget,
    End,
    Outcome,
    Transition,
    transition,
)
from django_leasequeue.statuses import FINAL, Status

__all__ = ["Ending", "Settled", "Verdict", "finish_within", "settle"]


class Ending(NamedTuple):
    """An attempt that ended: its lease and its outcome."""

    lease: Lease
    outcome: Outcome


class Verdict(Enum):
    """What settling an attempt came to."""

    SETTLED = "settled"
    LOST = "lost"
    PENDING = "pending"


class Settled(NamedTuple):
    """The result for one ending; `status` is what the job became when it was settled now.

    `verdict` PENDING: somebody has the row locked; nothing was written, try again soon.
    """

    ending: Ending
    verdict: Verdict
    status: Status | None = None


class _Mismatch(Exception):
    """A fenced write met fewer rows than were locked: a deadline passed in between."""


#: One UPDATE serves all endings that share this.
_Group = tuple[Transition, Outcome]


def settle(connection: BaseDatabaseWrapper, endings: Sequence[Ending]) -> list[Settled]:
    """Write the endings that still hold their lease and return what became of each, in order.

    An attempt row and the job's new status commit together. An ending whose lease is gone writes
    nothing and is LOST, unless its attempt row says already that it ended so (an earlier COMMIT
    whose answer was lost): then that stands and it is SETTLED. So it is when the handler had
    completed the job itself, whose `ending` is returned then. On an error that repeating cannot
    help the endings are written one by one; texts that cannot be stored lose what the database has
    no place for, and an ending that it refuses all the same becomes a failed attempt.
    """
    if not endings:
        return []
    unknown = False
    try:
        statuses = _write(connection, endings)
    except CommitUnknown:
        statuses, unknown = {}, True  # the attempt rows tell, below
    except (DatabaseError, InterfaceError) as error:
        if trouble(connection, error) is not None:
            raise
        if len(endings) > 1:
            return [result for ending in endings for result in settle(connection, [ending])]
        endings, statuses = _write_plainer(connection, endings[0])
    missing = {lease: outcome for lease, outcome in endings if lease not in statuses}
    fate_of = fates(connection, missing, unknown=unknown)
    return [
        Settled(ending, Verdict.SETTLED, statuses[ending.lease])
        if ending.lease in statuses
        else _as_found(ending, fate_of[ending.lease])
        for ending in endings
    ]


def _as_found(ending: Ending, fate: Fate) -> Settled:
    """Return the result of an ending that was not written now."""
    if fate is Fate.DONE:  # by complete(), before the handler's process was killed, say
        ending = Ending(ending.lease, Outcome(End.COMPLETED, settled=True))
        return Settled(ending, Verdict.SETTLED, Status.DONE)
    return Settled(ending, _VERDICTS[fate])


_VERDICTS = {
    Fate.ENDED: Verdict.SETTLED,
    Fate.HELD: Verdict.PENDING,
    Fate.LOST: Verdict.LOST,
}


def _write(connection: BaseDatabaseWrapper, endings: Sequence[Ending]) -> dict[Lease, Status]:
    """Write what can be written; return the new status of each lease that was held."""
    for tried in (1, 2, 3):
        try:
            return run(connection, lambda cursor: _settle(connection, cursor, endings))
        except _Mismatch:
            if tried == 3:
                raise
    raise AssertionError("unreachable")


def _write_plainer(
    connection: BaseDatabaseWrapper, ending: Ending
) -> tuple[list[Ending], dict[Lease, Status]]:
    """Write an ending that the server refused, as plainly as it takes; return what was written."""
    *simpler, last = (Ending(ending.lease, outcome) for outcome in plainer(ending.outcome))
    for candidate in simpler:
        try:
            return [candidate], _write(connection, [candidate])
        except (DatabaseError, InterfaceError) as error:
            if trouble(connection, error) is not None:
                raise
    return [last], _write(connection, [last])


def _settle(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, endings: Sequence[Ending]
) -> dict[Lease, Status]:
    dialect = dialect_for(connection)
    locked = _lock(dialect, cursor, [ending.lease for ending in endings])
    planned: dict[Lease, _Group] = {}
    for lease, outcome in endings:
        if lease in locked and lease not in planned:
            planned[lease] = (transition(outcome, locked[lease].budget), outcome)
    finals = {
        lease.job_id: locked[lease].live_key
        for lease, (change, _outcome) in planned.items()
        if change.status in FINAL
    }
    held = held_keys(dialect, cursor, finals)
    groups: dict[_Group, list[Lease]] = {}
    statuses: dict[Lease, Status] = {}
    for lease, (change, outcome) in planned.items():
        if lease.job_id in held:
            continue  # neither settled nor lost: pending
        statuses[lease] = change.status
        groups.setdefault((change, outcome), []).append(lease)
    for (change, outcome), leases in groups.items():
        if dialect.writes_within:
            _update(dialect, cursor, leases, change, outcome, recorded=outcome.recorded)
            continue
        record_outcome(connection, cursor, leases, outcome)
        _update(dialect, cursor, leases, change, outcome)
    return statuses


class _Locked(NamedTuple):
    """What is known of a locked row."""

    budget: Budget
    live_key: str | None


def _lock(dialect: Dialect, cursor: CursorWrapper, leases: Sequence[Lease]) -> dict[Lease, _Locked]:
    """Lock the rows whose lease is held and free to lock; return what they hold."""
    ids = sorted({lease.job_id for lease in leases})
    wanted = set(leases)
    cursor.execute(
        tagged(
            "settle",
            "SELECT id, lease_token, attempts, max_attempts, crashes, max_crashes, releases, "
            f"live_key FROM leasequeue_job{dialect.hint('PRIMARY')} WHERE id IN ({marks(ids)}) "
            f"AND {dialect.aside('status')} = 'reserved' "
            f"AND {dialect.aside('lease_until')} > {dialect.now} "
            f"ORDER BY id{dialect.skip_locked}",
        ),
        ids,
    )
    rows = {
        Lease(job_id, bytes(token)): _Locked(Budget(*counters), live_key)
        for job_id, token, *counters, live_key in cursor.fetchall()
    }
    return {lease: row for lease, row in rows.items() if lease in wanted}


def _update(
    dialect: Dialect,
    cursor: CursorWrapper,
    leases: Sequence[Lease],
    change: Transition,
    outcome: Outcome,
    *,
    recorded: bool = False,
) -> None:
    """Write one group's new state under the fence. Raises _Mismatch when a row escaped it.

    With `recorded` the attempt rows are written by the same statement: a handler's complete()
    waits for each.
    """
    ids = sorted(lease.job_id for lease in leases)
    columns, params = _assignments(dialect, change, outcome, one=len(ids) == 1)
    held, tokens = fence(dialect, leases)
    sql = (
        f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET {', '.join(columns)} "
        f"WHERE id IN ({marks(ids)}) AND {held}"
    )
    params += [*ids, *tokens]
    if recorded:
        insert, values = insertion(
            dialect, leases, outcome.end, outcome.error, outcome.reason, finished="updated_at"
        )
        ended = f"WITH ended AS ({sql} RETURNING id, claims, leased_by, claimed_at, updated_at)"
        sql, params = f"{ended} {insert} FROM ended", [*params, *values]
    cursor.execute(tagged("settle", sql), params)
    if cursor.rowcount != len(ids):
        raise _Mismatch


def _assignments(
    dialect: Dialect, change: Transition, outcome: Outcome, *, one: bool
) -> tuple[list[str], list[Any]]:
    """Return the SET clauses of jobs, or of `one`, that leave `reserved`, and their parameters."""
    # Words of the queue's own are written out: a driver takes microseconds to quote each value.
    columns = [
        f"status = '{change.status.value}'",
        "lease_token = NULL",
        f"releases = {change.releases:d}",
    ]
    params: list[Any] = []
    if change.status is Status.DONE:
        columns.append("last_error = ''")
    else:
        columns.append("last_error = %s")
        params.append(clean_text(outcome.message))
    if outcome.error is not None:
        columns.append("fingerprint = %s")
        params.append(outcome.error.fingerprint)
    if change.attempts:
        columns.append("attempts = attempts + (%s)")
        params.append(change.attempts)
    if change.crashes:
        columns.append("crashes = crashes + %s")
        params.append(change.crashes)
    if outcome.result is not None:
        columns.append(f"result = {dialect.json_param}")
        params.append(outcome.result)
    if change.status is Status.READY and change.delay is not None:
        columns.append(f"available_at = {dialect.later}")
        params.append(dialect.span(change.delay))
    stamp = dialect.stamp_one if one else dialect.stamp
    if change.status in FINAL:
        columns += ["live_key = NULL", f"finished_at = {stamp}"]
    # A dead job with a deadline waits for its `failed` hook: the same index finds it.
    waits = change.status is Status.DEAD and outcome.bury
    columns += [f"lease_until = {stamp if waits else 'NULL'}", f"updated_at = {stamp}"]
    return columns, params


def finish_within(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, lease: Lease, outcome: Outcome
) -> None:
    """Complete a job inside a transaction that the caller commits.

    Its business rows, `done` and the attempt row then stand or fall together. Raises LeaseLost,
    and has written nothing that may be kept, when the lease is not held.
    """
    dialect = dialect_for(connection)
    change = Transition(Status.DONE, attempts=0, crashes=0, releases=0)
    together = dialect.writes_within and outcome.recorded
    try:
        _update(dialect, cursor, [lease], change, outcome, recorded=together)
    except _Mismatch:
        raise LeaseLost(f"job {lease.job_id}: the lease was lost before the commit") from None
    if not together:
        record_outcome(connection, cursor, [lease], outcome)
