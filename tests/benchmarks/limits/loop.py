"""The loop: claim some by one lane's index, run them, settle each by itself or all together."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any

from tests.benchmarks.limits.driver import Database

logger = logging.getLogger("limit")
#: Another loop may hold the last rows locked and give them up.
_LOOKS = 3
_PAUSE = 0.02

Row = tuple[int, str, Any, int, Any]


class Loop:
    """Least SQL: SELECT, UPDATE, COMMIT, SELECT for a claim; UPDATE, INSERT, COMMIT for an end."""

    def __init__(self, database: Database, claim: int, settle: int, *, effect: bool) -> None:
        self.database = database
        self.claim_size = claim
        self.settle_size = settle
        self.effect = effect
        self.worker = f"limit:{os.getpid()}"
        self.token = b""

    def run(self, most: int) -> None:
        """Run until the lane is empty, or `most` jobs are done."""
        empty = 0
        while most > 0 and empty < _LOOKS:
            rows = self.claim(min(self.claim_size, most))
            empty = 0 if rows else empty + 1
            if not rows:
                time.sleep(_PAUSE)
            most -= len(rows)
            for start in range(0, len(rows), self.settle_size):
                group = rows[start : start + self.settle_size]
                for row in group:
                    handle(**(json.loads(row[2]) if isinstance(row[2], str) else row[2]))
                self.settle(group)

    def claim(self, count: int) -> list[Row]:
        """Reserve the first due jobs that nobody has locked, and read them."""
        db = self.database
        db.start()
        db.execute(
            f"SELECT id FROM leasequeue_job{db.index} WHERE queue_name = %s AND status = 'ready' "
            f"AND priority = %s AND available_at <= {db.now} ORDER BY available_at, id "
            f"LIMIT {count}{db.lock}",
            ["default", 0],
        )
        ids = [row[0] for row in db.cursor.fetchall()]
        if not ids:
            db.commit()
            return []
        self.token = os.urandom(16)
        marks = ", ".join(["%s"] * len(ids))
        db.execute(
            "UPDATE leasequeue_job SET status = 'reserved', attempts = attempts + 1, "
            "claims = claims + 1, lease_token = %s, leased_by = %s, "
            f"lease_until = {db.later}, claimed_at = {db.stamp}, updated_at = {db.stamp} "
            f"WHERE id IN ({marks})",
            [self.token, self.worker, *sorted(ids)],
        )
        db.commit()
        db.execute(
            "SELECT id, job_type, payload, claims, claimed_at FROM leasequeue_job "
            f"WHERE id IN ({marks})",
            ids,
        )
        rows: list[Row] = sorted(db.cursor.fetchall())
        for row in rows:
            logger.info("claimed job %s %s", row[0], row[1])
        return rows

    def settle(self, rows: list[Row]) -> None:
        """End these attempts under the fence, in one transaction."""
        db = self.database
        db.start()
        ids = [row[0] for row in rows]
        changed = db.execute(
            f"UPDATE leasequeue_job SET status = 'done', finished_at = {db.stamp}, "
            f"updated_at = {db.stamp}, lease_until = NULL, lease_token = NULL "
            f"WHERE id IN ({', '.join(['%s'] * len(ids))}) AND lease_token = %s "
            f"AND status = 'reserved' AND lease_until > {db.now}",
            [*ids, self.token],
        )
        if changed != len(rows):
            raise RuntimeError(f"{len(rows) - changed} leases were lost")
        values = f"(%s, %s, %s, %s, %s, {db.stamp}, 'completed')"
        db.execute(
            "INSERT INTO leasequeue_jobattempt "
            "(job_id, number, token, worker, started_at, finished_at, outcome) "
            f"VALUES {', '.join([values] * len(rows))}",
            [value for row in rows for value in (row[0], row[3], self.token, self.worker, row[4])],
        )
        if self.effect:
            marks = ", ".join(["(%s)"] * len(rows))
            db.execute(f"INSERT INTO bench_effect (job_id) VALUES {marks}", ids)
        db.commit()
        for job_id in ids:
            logger.info("completed job %s", job_id)


def handle(n: int) -> None:
    """Do nothing, as the job type that it is compared with."""
