"""A table as it is after a year: nearly all done, some of everything else, spread over the ids.

The server makes the rows itself: they are computed from numbers, and none is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import digest_key
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.models import BulkRun, Queue, Schedule, Worker
from tests.core.arrange import run
from tests.core.filling import ANALYZE
from tests.waiting import wait_until

KEY = "bench:1"
BIG_GROUP = "f" * 16
MOST_ATTEMPTS = 500
_STEP = 20_000
_TYPES = 30
_GROUPS = 40
#: Has no divisor in common with a round number: multiplied by it, neighbours lie far apart.
_SCATTER = 7919
#: Of a million jobs; the others are done. The large queue and the type of a mass of jobs have none
#: in common.
_SHARES = (
    ("big", 12_000),
    ("dead", 4000),
    ("ready", 20_000),
    ("scheduled", 5000),
    ("retrying", 500),
    ("parked", 300),
    ("cancelled", 2000),
    ("reserved", 20),
    ("rare", 50),
    ("large", 300_000),
    ("mass", 300_000),
)
# As decimals: PostgreSQL takes the product of two small integers for another small one.
_DIGITS = " UNION ALL ".join(f"SELECT CAST({digit} AS DECIMAL(20)) AS d" for digit in range(10))
_TOKEN = {
    "mysql": "UNHEX(LEFT(SHA2(CONCAT(id, '-', {}), 256), 32))",
    "postgresql": "decode(md5(concat(id, '-', {})), 'hex')",
}
_ERROR = "ValueError: no such customer\\nTraceback (most recent call last): at the usual place"


def analyze(connection: BaseDatabaseWrapper) -> None:
    """Have the server look at the jobs and attempts, by whose sample it plans from now on."""
    for table in ("leasequeue_job", "leasequeue_jobattempt"):
        wait_until(lambda table=table: _looked_at(connection, table))


def _looked_at(connection: BaseDatabaseWrapper, table: str) -> bool:
    run(connection, ANALYZE[connection.vendor].format(table))
    if connection.vendor != "postgresql":
        return True
    # While anybody has a snapshot, an autovacuum that analyzes say, a page with new rows is not
    # seen by all: an index alone is then no answer, and a scan of a small table is cheaper.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relallvisible >= 0.9 * relpages FROM pg_class WHERE relname = %s", [table]
        )
        ((visible,),) = cursor.fetchall()
    return bool(visible)


@dataclass(frozen=True)
class Filling:
    """So many jobs in so many queues, with one to three attempts each."""

    connection: BaseDatabaseWrapper
    rows: int
    queues: int

    def fill(self) -> int:
        """Fill all tables; return the id of the job that has the most attempts."""
        for first in range(1, self.rows + 1, _STEP):
            self._jobs(first, min(self.rows + 1, first + _STEP))
        for number in (1, 2, 3):
            self._attempts(str(number), f"leasequeue_job WHERE claims >= {number}")
        worst = self._worst()
        self._others()
        analyze(self.connection)
        return worst

    def _jobs(self, first: int, end: int) -> None:
        columns = self._columns()
        run(
            self.connection,
            f"INSERT INTO leasequeue_job (id, {', '.join(columns)}) "
            f"SELECT n, {', '.join(columns.values())} "
            f"FROM (SELECT n, MOD(n * {_SCATTER}, {self.rows}) AS m "
            f"FROM ({_numbers(first, end)}) AS counted) AS scattered ORDER BY n",
        )

    def _columns(self) -> dict[str, str]:
        """Return what each column holds, as SQL over the number n, and m, which is scattered."""
        past = self._moment(f"(n - {self.rows}) * 20000000")
        ahead, lease = self._moment("(1 + m) * 1000000"), self._moment("60000000")
        kinds = {
            "status": {
                "'dead'": ("big", "dead"),
                "'ready'": ("ready", "scheduled", "retrying"),
                "'parked'": ("parked",),
                "'cancelled'": ("cancelled",),
                "'reserved'": ("reserved",),
                None: "'done'",
            },
            "queue_name": {
                "'rare'": ("rare",),
                "'large'": ("large",),
                None: f"CONCAT('queue-', MOD(n, {self.queues}))",
            },
            "job_type": {
                "'rare.type'": ("rare",),
                "'mass.type'": ("mass",),
                "'big.type'": ("big",),
                None: f"CONCAT('bench.type', MOD(n, {_TYPES}))",
            },
            "priority": {None: "CASE WHEN MOD(n, 20) = 0 THEN 10 ELSE 0 END"},
            "fingerprint": {
                f"'{BIG_GROUP}'": ("big",),
                f"CONCAT('aaaaaaaaaaaaaa', 10 + MOD(m, {_GROUPS}))": ("dead",),
                None: "''",
            },
            "last_error": {f"'{_ERROR}'": ("big", "dead", "retrying"), None: "''"},
            "attempts": {"0": ("ready", "scheduled", "parked"), None: "1 + MOD(n, 3)"},
            "claims": {"0": ("ready", "scheduled", "parked"), None: "1 + MOD(n, 3)"},
            "available_at": {ahead: ("scheduled", "retrying"), None: past},
            "created_at": {None: past},
            "lease_until": {lease: ("reserved",), None: "NULL"},
            "finished_at": {
                "NULL": ("ready", "scheduled", "retrying", "parked", "reserved"),
                None: past,
            },
        }
        return {name: self._case(cases) for name, cases in kinds.items()}

    def _case(self, cases: dict[str | None, Any]) -> str:
        found = []
        for value, kinds in cases.items():
            if value is None:
                continue
            for kind in kinds:
                first, end = self._range(kind)
                found.append(f"WHEN m >= {first} AND m < {end} THEN {value}")
        return f"CASE {' '.join(found)} ELSE {cases[None]} END" if found else str(cases[None])

    def _range(self, wanted: str) -> tuple[int, int]:
        first = 0
        for kind, share in _SHARES:
            end = first + max(1, share * self.rows // 1_000_000)
            if kind == wanted:
                return first, end
            first = end
        raise LookupError(wanted)

    def _attempts(self, number: str, jobs: str) -> None:
        outcome = "CASE WHEN status = 'dead' THEN 'failed' ELSE 'completed' END"
        run(
            self.connection,
            "INSERT INTO leasequeue_jobattempt (job_id, number, token, worker, started_at, "
            "finished_at, outcome, error_text, frames) SELECT id, "
            f"{number}, {_TOKEN[self.connection.vendor].format(number)}, 'worker:host:1:00', "
            f"created_at, COALESCE(finished_at, created_at), {outcome}, last_error, "
            f"'[\"shop/jobs.py:12 charge\"]' FROM {jobs}",
        )

    def _worst(self) -> int:
        """Give one dead job very many attempts, and a key."""
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT MAX(id) FROM leasequeue_job WHERE status = 'dead' AND claims = 3"
            )
            (worst,) = cursor.fetchone()
        numbers = _numbers(4, MOST_ATTEMPTS + 1)
        self._attempts("n", f"leasequeue_job, ({numbers}) AS counted WHERE id = {worst:d}")
        run(
            self.connection,
            "UPDATE leasequeue_job SET claims = %s, idempotency_key = %s WHERE id = %s",
            [MOST_ATTEMPTS, digest_key(KEY), worst],
        )
        return int(worst)

    def _others(self) -> None:
        """Fill the small tables, each with more than a page shows at once."""
        Worker.objects.bulk_create(
            Worker(name=f"worker-{n}:host:{n}:00", host="host", pid=n, version="1", queues=["*"])
            for n in range(120)
        )
        Schedule.objects.bulk_create(
            Schedule(name=f"schedule-{n}", job_type="bench.type1", cron="0 * * * *")
            for n in range(150)
        )
        BulkRun.objects.bulk_create(
            BulkRun(operation="requeue", state="finished", filter={"queue": "queue-1"})
            for n in range(150)
        )
        Queue.objects.create(name="queue-1", paused_at=UtcNow(), paused_by="root")

    def _moment(self, microseconds: str) -> str:
        return dialect_for(self.connection).later.replace("%s", f"({microseconds})")


def _numbers(first: int, end: int) -> str:
    """Return a query for the numbers from `first` to before `end`, as n."""
    places = range(len(str(end - first)))
    sum_of = " + ".join(f"{10**place} * t{place}.d" for place in places)
    tables = ", ".join(f"({_DIGITS}) AS t{place}" for place in places)
    return f"SELECT {first} + {sum_of} AS n FROM {tables} WHERE {first} + {sum_of} < {end}"
