"""Progress: what running handlers tell of how far they are, written under their leases."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import Lease, fence
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged

__all__ = ["save_progress"]


def save_progress(connection: BaseDatabaseWrapper, texts: Mapping[Lease, str]) -> set[Lease]:
    """Store JSON texts as the progress of held jobs and return the leases that were free to write.

    A lease that is not held any more writes nothing. Waits for no row lock: what somebody has
    locked is left out, to be tried again.
    """
    if not texts:
        return set()
    try:
        return run(connection, lambda cursor: _save(connection, cursor, texts))
    except CommitUnknown:
        return set()  # to be written again, which does no harm


def _save(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, texts: Mapping[Lease, str]
) -> set[Lease]:
    dialect = dialect_for(connection)
    ids = sorted(lease.job_id for lease in texts)
    cursor.execute(
        tagged(
            "progress",
            f"SELECT id, lease_token FROM leasequeue_job{dialect.hint('PRIMARY')} "
            f"WHERE id IN ({marks(ids)}) ORDER BY id{dialect.skip_locked}",
        ),
        ids,
    )
    seen = {Lease(job_id, bytes(token or b"")) for job_id, token in cursor.fetchall()}
    mine = sorted(set(texts) & seen)
    if mine:
        _write(connection, cursor, {lease: texts[lease] for lease in mine})
    free = {lease.job_id for lease in seen}
    return {lease for lease in texts if lease.job_id in free}


def _write(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, texts: Mapping[Lease, str]
) -> None:
    dialect = dialect_for(connection)
    leases = list(texts)
    held, tokens = fence(dialect, leases)
    cases = " ".join([f"WHEN id = %s THEN {dialect.json_param}"] * len(leases))
    value = f"CASE {cases} END" if len(leases) > 1 else dialect.json_param
    ids = [lease.job_id for lease in leases]
    params = (
        [part for lease in leases for part in (lease.job_id, texts[lease])]
        if len(leases) > 1
        else [texts[leases[0]]]
    )
    cursor.execute(
        tagged(
            "progress",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET progress = {value}, "
            f"updated_at = {dialect.stamp} WHERE id IN ({marks(ids)}) AND {held}",
        ),
        [*params, *ids, *tokens],
    )
