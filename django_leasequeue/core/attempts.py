"""The attempt row: written in the transaction that ends an attempt, read to learn what stood."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.codec import clean_text
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.lease import Lease, ends_on_record
from django_leasequeue.core.transaction import ask, marks, run, tagged
from django_leasequeue.outcomes import End, ErrorSummary, Outcome

__all__ = [
    "Fate",
    "await_free",
    "fates",
    "insertion",
    "last_end",
    "record",
    "record_outcome",
    "resolve",
]

_LOOK_UPS = 8


class Fate(Enum):
    """What the database says of a lease that a write did not find."""

    ENDED = "ended"  # an attempt row of this token says that it ended so: that outcome stands
    HELD = "held"  # still reserved under this token, unexpired: somebody has the row locked
    DONE = "done"  # the handler had completed the job, whatever was to be written now
    LOST = "lost"  # neither, or it ended otherwise (expired, cancelled): nothing may be written


def record(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    leases: Sequence[Lease],
    end: End,
    error: ErrorSummary | None = None,
    text: str = "",
) -> None:
    """Insert one attempt row per lease, from what the job's row says of its last claim.

    The caller holds the rows' locks, or has just written them under the fence, and commits.
    """
    sql, params = insertion(dialect_for(connection), leases, end, error, text)
    ids = sorted(lease.job_id for lease in leases)
    cursor.execute(
        tagged("attempt", f"{sql} FROM leasequeue_job WHERE id IN ({marks(ids)})"), [*params, *ids]
    )


def insertion(
    dialect: Dialect,
    leases: Sequence[Lease],
    end: End,
    error: ErrorSummary | None = None,
    text: str = "",
    *,
    finished: str | None = None,
) -> tuple[str, list[Any]]:
    """Return the INSERT of attempt rows without the source of its SELECT, and its parameters.

    The source has the columns id, claims, leased_by and claimed_at of the jobs of `leases`, and
    `finished`, when they ended: now without it.
    """
    groups: dict[bytes, list[int]] = {}
    for lease in leases:
        groups.setdefault(lease.token, []).append(lease.job_id)
    token, params = dialect.token_mark, [dialect.token_param(key) for key in groups]
    if len(groups) > 1:
        cases = (f"WHEN id IN ({marks(ids)}) THEN {token}" for ids in groups.values())
        token = f"CASE {' '.join(cases)} END"
        params = [
            value for key, ids in groups.items() for value in (*ids, dialect.token_param(key))
        ]
    sql = (
        "INSERT INTO leasequeue_jobattempt (job_id, number, token, worker, started_at, "
        "finished_at, outcome, error_class, error_text, frames) "
        f"SELECT id, claims, {token}, leased_by, claimed_at, {finished or dialect.stamp}, "
        f"'{end.value}', "
    )
    if error is not None:
        frames = json.dumps(error.frames, ensure_ascii=False)
        sql = f"{sql}%s, %s, {dialect.json_param}"
        return sql, [*params, error.error_class, error.text, frames]
    nothing = dialect.json_param.replace("%s", "'[]'")
    if text := clean_text(text):
        return f"{sql}'', %s, {nothing}", [*params, text]
    return f"{sql}'', '', {nothing}", params


def record_outcome(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    leases: Sequence[Lease],
    outcome: Outcome,
) -> None:
    """Insert the attempt rows of `leases` that all ended with `outcome`, if it leaves any."""
    if outcome.recorded:
        record(connection, cursor, leases, outcome.end, outcome.error, outcome.reason)


def fates(
    connection: BaseDatabaseWrapper, outcomes: Mapping[Lease, Outcome], *, unknown: bool = False
) -> dict[Lease, Fate]:
    """Return what became of each lease whose attempt was to end so, by plain reads.

    `unknown`: the leases were held when these outcomes were written, and only COMMIT's answer was
    lost. ENDED is final, so it is asked last.
    """
    if not outcomes:
        return {}
    dialect = dialect_for(connection)
    ids = sorted({lease.job_id for lease in outcomes})
    reserved = {
        Lease(job_id, bytes(token or b"")): bool(held)
        for job_id, token, held in ask(
            connection,
            tagged(
                "fate",
                f"SELECT id, lease_token, lease_until > {dialect.now} "
                f"FROM leasequeue_job{dialect.hint('PRIMARY')} "
                f"WHERE id IN ({marks(ids)}) AND {dialect.aside('status')} = 'reserved'",
            ),
            ids,
        )
    }
    ended = ends_on_record(connection, outcomes)
    return {
        lease: _fate(
            ended.get(lease),
            outcome,
            held=reserved.get(lease, False),
            # Whoever else takes a lease away puts it on record.
            given_back=unknown and lease not in reserved and not outcome.recorded,
        )
        for lease, outcome in outcomes.items()
    }


def _fate(ended: str | None, outcome: Outcome, *, held: bool, given_back: bool) -> Fate:
    if ended == outcome.end.value:
        return Fate.ENDED
    if ended in (End.COMPLETED.value, End.SKIPPED.value):
        return Fate.DONE
    if held:
        return Fate.HELD
    return Fate.ENDED if given_back and ended is None else Fate.LOST


def resolve(connection: BaseDatabaseWrapper, lease: Lease, outcome: Outcome) -> Fate:
    """Return what became of a lease after a COMMIT of `outcome` whose answer was lost.

    Raises the database's error when it cannot be reached.
    """
    await_free(connection, lease.job_id)
    return fates(connection, {lease: outcome}, unknown=True)[lease]


def await_free(connection: BaseDatabaseWrapper, job_id: int) -> None:
    """Return when nobody has the job's row locked, or after some seconds.

    The lock may belong to a COMMIT under way on the server, whose answer was lost. Raises the
    database's error when it cannot be reached.
    """
    dialect = dialect_for(connection)

    def free(cursor: CursorWrapper) -> bool:
        cursor.execute(
            tagged(
                "fate",
                f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} "
                f"WHERE id = %s{dialect.skip_locked}",
            ),
            [job_id],
        )
        return cursor.fetchone() is not None

    for tried in range(_LOOK_UPS):
        if run(connection, free):
            return
        time.sleep(0.02 * 2**tried)


def last_end(connection: BaseDatabaseWrapper, job_id: int) -> tuple[str, str]:
    """Return the outcome and error text of the job's last attempt, empty texts without one."""
    rows = ask(
        connection,
        tagged(
            "attempt",
            "SELECT outcome, error_text FROM leasequeue_jobattempt "
            f"{dialect_for(connection).hint('leasequeue_attempt_number')} "
            "WHERE job_id = %s ORDER BY number DESC LIMIT 1",
        ),
        [job_id],
    )
    return rows[0] if rows else ("", "")
