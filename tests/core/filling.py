"""A table as it looks after months: many jobs in the future, many done, few of anything else."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue_many
from tests.core.arrange import TABLES, run

QUEUES = ("plan-a", "plan-b", "plan-c", "plan-d")
PRIORITIES = (10, 0, -10)
DOUBLINGS = 6  # 1 000 jobs become 64 000
COPIED = "queue_name, job_type, payload, priority, available_at, status, finished_at"
ANALYZE = {
    "mysql": "ANALYZE TABLE {}",
    "postgresql": "VACUUM ANALYZE {}",
    "sqlite": "ANALYZE {}",
}


@dataclass
class Filling:
    """What lies in the tables just now; each kind makes way for the next."""

    connection: BaseDatabaseWrapper
    is_small: bool = False

    def small(self) -> None:
        """A few rows of every status, with statistics."""
        self.empty()
        self.is_small = True
        self._scheduled(40)
        self._finished("id > 0")
        self._analyze()

    def unanalyzed(self) -> None:
        """Very many rows, with the statistics of a quiet time: all was done, in another queue."""
        self.empty()
        self.is_small = False
        self._scheduled(1000)
        run(self.connection, "UPDATE leasequeue_job SET status = 'done', queue_name = 'plan-old'")
        for _ in range(3):
            self._copy("status", "id > 0")
        self._analyze()
        self._scheduled(1000)
        for _ in range(DOUBLINGS):
            self._copy("status", "status = 'ready'")
        self._finished("attempts = 0 AND priority = 0 AND queue_name = 'plan-a'")

    def analyzed(self) -> None:
        """The same rows, with statistics of them."""
        if self.is_small:
            self.unanalyzed()
        self._analyze()

    def empty(self) -> None:
        """No rows, and statistics that say so."""
        for table in TABLES:
            run(self.connection, f"DELETE FROM {table}")
        self._analyze()

    def _scheduled(self, count: int) -> None:
        options = [
            {"queue": QUEUES[n % 4], "priority": PRIORITIES[n % 3], "delay": 3600 + n}
            for n in range(count)
        ]
        enqueue_many([("arranged", {"n": n}, option) for n, option in enumerate(options)])

    def _finished(self, where: str) -> None:
        for status in ("'done'", "'dead'", "'cancelled'"):
            self._copy(status, f"status = 'ready' AND {where}")
        run(
            self.connection,
            "INSERT INTO leasequeue_jobattempt (job_id, number, token, outcome) "
            "SELECT id, 1, %s, 'completed' FROM leasequeue_job WHERE status = 'done'",
            [b"t" * 16],
        )

    def _copy(self, status: str, where: str) -> None:
        select = COPIED.replace("status", status)
        sql = f"INSERT INTO leasequeue_job ({COPIED}) SELECT {select} FROM leasequeue_job"
        run(self.connection, f"{sql} WHERE {where}")

    def _analyze(self) -> None:
        for table in TABLES:
            run(self.connection, ANALYZE[self.connection.vendor].format(table))
