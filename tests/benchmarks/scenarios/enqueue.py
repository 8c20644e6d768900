"""Enqueueing, one by one and ten thousand at once, against raw INSERTs of the same columns."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.insert import COLUMNS
from django_leasequeue.models import Job
from tests.benchmarks import tables
from tests.benchmarks.drains import WrongResult
from tests.benchmarks.rounds import Bench, Comparison, Scenario


@dataclass
class Enqueue:
    """`work` puts `count` jobs into empty tables."""

    count: int
    work: Callable[[int], object]

    def __call__(self) -> dict[str, float]:
        """Return the jobs per second."""
        tables.empty("default")
        began = time.perf_counter()
        self.work(self.count)
        seconds = time.perf_counter() - began
        if Job.objects.count() != self.count:
            raise WrongResult(f"{Job.objects.count()} rows for {self.count} jobs")
        return {"": self.count / seconds}


def one_by_one(count: int) -> None:
    """Enqueue outside of a transaction, a commit each."""
    for n in range(count):
        enqueue("bench.noop", {"n": n})


def raw_one_by_one(count: int) -> None:
    """Insert the same with the driver's own cursor."""
    sql, cursor = _insert(), connection.connection.cursor()
    for n in range(count):
        cursor.execute(sql, _row(n, secrets.token_hex(32)))


def in_bulk(count: int) -> None:
    """Enqueue all in one call."""
    enqueue_many([("bench.noop", {"n": n}, {}) for n in range(count)])


def in_bulk_keyed(count: int) -> None:
    """The same, a key each."""
    enqueue_many([("bench.noop", {"n": n}, {"key": f"bulk-{n}"}) for n in range(count)])


def raw_executemany(count: int) -> None:
    """Insert the same with the driver's executemany, in one transaction."""
    with transaction.atomic():
        connection.connection.cursor().executemany(
            _insert(), [_row(n, secrets.token_hex(32)) for n in range(count)]
        )


def raw_executemany_keyed(count: int) -> None:
    """The same with digests of keys."""
    with transaction.atomic():
        connection.connection.cursor().executemany(
            _insert(),
            [_row(n, hashlib.sha256(f"bulk-{n}".encode()).hexdigest()) for n in range(count)],
        )


def _insert() -> str:
    connection.ensure_connection()
    dialect = dialect_for(connection)
    values = ", ".join(["%s"] * (COLUMNS.count(",") - 1))
    sql = f"INSERT INTO leasequeue_job ({COLUMNS}) VALUES ({values}, {dialect.stamp}, NULL)"
    return sql.replace("%s", "?") if connection.vendor == "sqlite" else sql


def _row(n: int, key: str) -> Sequence[Any]:
    payload = json.dumps({"n": n})
    return ("default", "bench.noop", payload, key, None, None, 0, 5, 3, None, 1, "{}", "")


def one(bench: Bench) -> dict[str, Enqueue]:
    """Return both ways to insert one by one; a tenth of the jobs, a commit each."""
    count = max(20, bench.jobs // 10)
    return {"enqueue()": Enqueue(count, one_by_one), "raw INSERT": Enqueue(count, raw_one_by_one)}


def bulk(bench: Bench) -> dict[str, Enqueue]:
    """Return bulk enqueues and their raw counterparts."""
    return {
        "enqueue_many()": Enqueue(bench.jobs, in_bulk),
        "raw executemany": Enqueue(bench.jobs, raw_executemany),
        "enqueue_many(), keyed": Enqueue(bench.jobs, in_bulk_keyed),
        "raw executemany, keyed": Enqueue(bench.jobs, raw_executemany_keyed),
    }


SCENARIOS = (
    Scenario(
        name="enqueue",
        title="Enqueue one by one",
        unit="jobs/s",
        contestants=one,
        comparisons=(Comparison("enqueue()", "raw INSERT"),),
    ),
    Scenario(
        name="bulk",
        title="Enqueue in bulk",
        unit="jobs/s",
        contestants=bulk,
        comparisons=(
            Comparison("enqueue_many()", "raw executemany", at_least=0.65),
            Comparison("enqueue_many(), keyed", "raw executemany, keyed", at_least=0.45),
        ),
    ),
)
