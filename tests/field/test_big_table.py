"""A13, I12: what is finished or lies in the future costs a claim nothing, nor the gauges.

Counted row by row as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue_many
from django_leasequeue.core import board, gauges, recent
from django_leasequeue.core.board import read_board
from django_leasequeue.core.gauges import read_gauges
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.recent import read_finished, read_recent
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.runtime.connections import open_control
from tests.core.arrange import TABLES, claim_jobs, run
from tests.core.filling import ANALYZE
from tests.core.plans import explained

DONE, FUTURE, READY = 100_000, 20_000, 10
COLUMNS = "queue_name, job_type, payload, priority, status, available_at, finished_at"


@pytest.fixture(scope="module")
def worker(django_db_setup, django_db_blocker, alias) -> Iterator[BaseDatabaseWrapper]:
    """A worker's session on that table."""
    connection = connections[alias]
    with django_db_blocker.unblock():
        fill(connection)
        analyze(connection)
        control = open_control(alias, 60)
        yield control
        control.close()
        for table in TABLES:
            run(connection, f"DELETE FROM {table}")
        analyze(connection)


def fill(connection: BaseDatabaseWrapper) -> None:
    enqueue_many([("t", {"n": n}, {"delay": 86_400 + n}) for n in range(1000)])
    for rows, status in ((FUTURE - 1000, "status"), (DONE, "'done'")):
        copied = COLUMNS.replace("status", status)
        for start in range(0, rows, FUTURE):
            run(
                connection,
                f"INSERT INTO leasequeue_job ({COLUMNS}) SELECT {copied} FROM leasequeue_job "
                f"CROSS JOIN ({' UNION ALL '.join(['SELECT 1 AS one'] * 20)}) twenty "
                f"WHERE status = 'ready' ORDER BY id LIMIT {min(FUTURE, rows - start)}",
            )


def analyze(connection: BaseDatabaseWrapper) -> None:
    for table in TABLES:
        run(connection, ANALYZE[connection.vendor].format(table))


def count(connection: BaseDatabaseWrapper, status: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM leasequeue_job WHERE status = %s", [status])
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("queues", ["default", "*", "none,default"])
def test_rows_read_by_claims_and_idle_polls(worker, queues):
    assert count(worker, "done") >= DONE
    assert count(worker, "ready") == FUTURE
    enqueue_many([("t", {"n": n}, {}) for n in range(READY)])
    lanes = Lanes(tuple(queues.split(",")))
    with explained(worker) as plans:
        assert len(claim_jobs(worker, READY, lanes=lanes)) == READY
        assert claim_jobs(worker, READY, lanes=lanes) == []
        lanes.forget()
        assert claim_jobs(worker, READY, lanes=lanes) == []
        assert recover_batch(worker) == []
    assert {plan.tag for plan in plans} >= {"lanes", "probe", "claim", "read", "recover"}
    for plan in plans:
        assert not plan.sorts, plan
        assert not plan.scans, plan
        assert plan.reads is None or plan.reads <= 2 * READY + 5, plan
    run(worker, "UPDATE leasequeue_job SET status = 'done' WHERE status = 'reserved'")


def test_rows_read_by_gauges(worker, monkeypatch):
    monkeypatch.setattr(gauges, "CAP", 100)
    with explained(worker) as plans:
        (queue,) = read_gauges(worker, seconds=60).queues
    assert (queue.queue, queue.ready, queue.scheduled) == ("default", 0, 100)
    assert plans
    for plan in plans:
        # The server's name for the rows that one count has found, and for none at all.
        indexes = {name for name in plan.indexes if name and not name.startswith("<")}
        assert indexes <= {
            "leasequeue_job_claim",
            "leasequeue_job_recover",
            "leasequeue_queue_name",
        }, plan
        assert "GROUP BY" not in plan.sql
        assert plan.reads is None or plan.reads <= 10 * gauges.CAP, plan


def test_rows_read_by_the_board(worker, monkeypatch):
    """What the admin's pages read: no more than their counts' caps, whatever lies there."""
    for name in ("CAP", "_LEAST_CAP"):
        monkeypatch.setattr(board, name, 100)
    monkeypatch.setattr(recent, "BUCKET_CAP", 100)
    with explained(worker) as plans:
        found = read_board(worker)
        buckets = read_finished(worker, found.now)
        read_recent(worker, found.now)
    (queue,) = found.queues
    assert (queue.queue, queue.ready, queue.scheduled) == ("default", 0, 100)
    assert sum(bucket.well for bucket in buckets) <= 100 * len(buckets)
    assert plans
    for plan in plans:
        assert "GROUP BY" not in plan.sql
        assert plan.reads is None or plan.reads <= 100 * (len(buckets) + 1), plan
