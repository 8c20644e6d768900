"""What lies in the tables: emptying them, and filling them on the server."""

from __future__ import annotations

from django.db import connections
from django.db.models import Max, Min

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.models import Job
from tests.benchmarks.work.models import Number

TABLES = ("leasequeue_job", "leasequeue_jobattempt", "leasequeue_worker", "bench_effect")
_ANALYZE = {
    "mysql": "ANALYZE TABLE {}",
    "postgresql": "VACUUM ANALYZE {}",
    "sqlite": "ANALYZE {}",
}
_EMPTY = {"sqlite": "DELETE FROM {}"}
#: Rows of one INSERT.
_CHUNK = 100_000
_NUMBER = "(a.n * 1000 + b.n)"
#: A millisecond after the row before, the last one now; `{0}` rows lie behind this one.
_AGO = {
    "mysql": "UTC_TIMESTAMP(6) - INTERVAL ({0}) * 1000 MICROSECOND",
    "postgresql": "statement_timestamp() - ({0}) * interval '1 millisecond'",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ({0}) / 1000.0))",
}


def execute(alias: str, sql: str, params: list[object] | None = None) -> int:
    """Run one statement; return its row count."""
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.rowcount


def empty(alias: str) -> None:
    """Leave no rows, and none on their way out either where the server can truncate."""
    for table in TABLES:
        execute(alias, _EMPTY.get(connections[alias].vendor, "TRUNCATE TABLE {}").format(table))
    Number.objects.using(alias).bulk_create(
        [Number(n=n) for n in range(1000)], ignore_conflicts=True
    )


def analyze(alias: str) -> None:
    """Let the server know what lies in the tables."""
    for table in TABLES:
        execute(alias, _ANALYZE[connections[alias].vendor].format(table))


def fill(
    alias: str,
    count: int,
    job_type: str = "bench.noop",
    *,
    queue: str = "'default'",
    priority: str = "0",
    columns: dict[str, str] | None = None,
) -> None:
    """Add `count` jobs, due a millisecond after one another up to now unless `columns` say else.

    Values are SQL; `a.n` and `b.n` are numbers from 0 to 999, `b.n` another one for each row.
    """
    vendor = connections[alias].vendor
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        values = {
            "queue_name": queue,
            "job_type": f"'{job_type}'",
            "payload": """'{"n": 1}'""",
            "priority": priority,
            "available_at": _AGO[vendor].format(f"{count - start} - {_NUMBER}"),
            **(columns or {}),
        }
        execute(
            alias,
            f"INSERT INTO leasequeue_job ({', '.join(values)}) SELECT {', '.join(values.values())} "
            f"FROM bench_number a, bench_number b WHERE {_NUMBER} < {size} "
            f"AND a.n <= {size // 1000}",
        )


def later(alias: str, seconds: float) -> str:
    """Return SQL of a moment `seconds` from now."""
    dialect = dialect_for(connections[alias])
    shown = f"'{dialect.span(seconds)}'" if isinstance(dialect.span(seconds), str) else None
    return dialect.later.replace("%s", shown or str(dialect.span(seconds)))


def record_done(alias: str) -> None:
    """Give each done job the attempt row that it would have."""
    done = Job.objects.using(alias).filter(status="done")
    first, last = done.aggregate(first=Min("id"), last=Max("id")).values()
    for start in range(first or 0, (last or -1) + 1, _CHUNK):
        execute(
            alias,
            "INSERT INTO leasequeue_jobattempt (job_id, number, token, outcome) "
            "SELECT id, 1, %s, 'completed' FROM leasequeue_job WHERE status = 'done' "
            "AND id >= %s AND id < %s",
            [b"t" * 16, start, start + _CHUNK],
        )
