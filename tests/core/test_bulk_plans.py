"""A bulk run reads along one index, a bounded number of rows a statement, whatever it looks for.

Seen on dead letters among many more jobs that are done, with statistics of that table
and with those of an empty one.
"""

from __future__ import annotations

import re

import pytest

from django_leasequeue import requeue_many
from django_leasequeue.core.bulk_filter import JobFilter
from tests.core.arrange import run
from tests.core.bulk import bury
from tests.core.filling import ANALYZE
from tests.core.plans import explained

DONE = "'done'"
COPIED = "queue_name, job_type, payload, status, finished_at"


@pytest.fixture(params=["unanalyzed", "analyzed"])
def table(request, connection):
    if connection.vendor == "sqlite" and request.param == "unanalyzed":
        pytest.skip("SQLite gathers statistics only when it is told to")
    run(connection, ANALYZE[connection.vendor].format("leasequeue_job"))
    bury(1200)
    for _ in range(3):
        select = f"SELECT {COPIED.replace('status', DONE)} FROM leasequeue_job"
        run(connection, f"INSERT INTO leasequeue_job ({COPIED}) {select} WHERE status = 'dead'")
    bury(30, "rare", queue_name="mail", fingerprint="f" * 16)
    if request.param == "analyzed":
        run(connection, ANALYZE[connection.vendor].format("leasequeue_job"))
    return connection


def test_plans(table):
    conditions = ({"queue": "mail"}, {"fingerprint": "f" * 16}, {"job_type": "rare"}, {})
    with explained(table) as plans:
        for wanted in conditions:
            requeue_many(JobFilter(**wanted), dry_run=True)
            requeue_many(JobFilter(**wanted))
        requeue_many(JobFilter(ids=range(1, 900)))
    for plan in plans:
        if "leasequeue_bulkrun" in plan.sql:  # a few rows, and a server may scan those
            continue
        assert not plan.sorts, plan
        assert not plan.scans, plan
        assert plan.indexes <= {"leasequeue_job_type", "PRIMARY"}, plan
        most = re.search(r"LIMIT (\d+)$", plan.sql)
        assert plan.reads is None or plan.reads <= (int(most[1]) if most else 600) + 1, plan
