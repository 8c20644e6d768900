"""What an operator would write by hand: chunks of ids, then UPDATE or DELETE by primary key."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.limits.driver import Database

CHUNK = 100
REQUEUE_CHUNK = 200


def prune(db: Database) -> int:
    """Delete finished jobs with their attempts, a chunk and a commit at a time."""
    return _in_chunks(db, "status = 'done'", "id", CHUNK, _delete)


def requeue(db: Database) -> int:
    """Make dead jobs ready."""
    return _in_chunks(db, "status = 'dead'", "id", REQUEUE_CHUNK, _requeue)


def recover(db: Database) -> int:
    """Take expired leases back, with an attempt row each."""
    where = f"status = 'reserved' AND lease_until <= {db.now}"
    return _in_chunks(db, where, "lease_until, id", CHUNK, _recover)


def _in_chunks(db: Database, where: str, order: str, size: int, work: Any) -> int:
    total = 0
    while True:
        db.start()
        db.execute(
            f"SELECT id FROM leasequeue_job WHERE {where} ORDER BY {order} LIMIT {size}{db.lock}"
        )
        ids = sorted(row[0] for row in db.cursor.fetchall())
        if ids:
            work(db, ids, ", ".join(["%s"] * len(ids)))
        db.commit()
        total += len(ids)
        if not ids:
            return total


def _delete(db: Database, ids: list[int], marks: str) -> None:
    for table in ("leasequeue_jobattempt", "leasequeue_jobeffect"):
        db.execute(f"DELETE FROM {table} WHERE job_id IN ({marks})", ids)
    db.execute(f"DELETE FROM leasequeue_job WHERE id IN ({marks})", ids)


def _requeue(db: Database, ids: list[int], marks: str) -> None:
    db.execute(
        "UPDATE leasequeue_job SET status = 'ready', attempts = 0, crashes = 0, releases = 0, "
        f"available_at = {db.stamp}, finished_at = NULL, updated_at = {db.stamp} "
        f"WHERE id IN ({marks})",
        ids,
    )


def _recover(db: Database, ids: list[int], marks: str) -> None:
    db.execute(
        "INSERT INTO leasequeue_jobattempt "
        "(job_id, number, token, worker, started_at, finished_at, outcome) "
        f"SELECT id, claims, lease_token, leased_by, claimed_at, {db.stamp}, 'expired' "
        f"FROM leasequeue_job WHERE id IN ({marks})",
        ids,
    )
    db.execute(
        "UPDATE leasequeue_job SET status = 'ready', crashes = crashes + 1, lease_token = NULL, "
        f"lease_until = NULL, available_at = {db.stamp}, updated_at = {db.stamp} "
        f"WHERE id IN ({marks})",
        ids,
    )
