"""No page of the admin reads a whole table, or asks for much, whatever lies there."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client, override_settings

from django_leasequeue.admin import paging
from django_leasequeue.core import dives, recent
from tests.bench_admin.fill import Filling
from tests.bench_admin.measure import QUERIES
from tests.bench_admin.pages import pages
from tests.core.plans import Plan, explained
from tests.statements import count_statements

ROWS = 10_000
#: In place of ten thousand: rows of a list, and recent attempts.
LIMIT = 1000
SAMPLE = 500
#: MariaDB makes a table of the rows that it counts, and reads that too.
READS = 2 * LIMIT + 500
#: A list that only some jobs match.
FEW_READS = 600
FEW = re.compile(r"scheduled|retrying|reserved|expired|parked|cancelled|rare|none|search|a job")
TABLES = re.compile(r"(?:/\* leasequeue:(\w+) \*/ )?(SELECT) .*leasequeue_job", re.DOTALL)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.leaves_reserved
@override_settings(ROOT_URLCONF="tests.bench_admin.pages")
def test_each_page(connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "COUNT_LIMIT", LIMIT)
    monkeypatch.setattr(recent, "_SAMPLE", SAMPLE)
    monkeypatch.setattr(dives, "_likely", {})  # as in a process that has just started
    worst = Filling(connection, ROWS, queues=8).fill()
    user = User.objects.create_superuser("root")
    client = Client()
    client.force_login(user)
    problems = []
    for page, url in pages(worst, user.pk):
        if "o=1" in url:  # the same the other way round
            continue
        with explained(connection, TABLES) as plans, count_statements(connection) as statements:
            status = client.get(url).status_code
        own = [sql for sql in statements if not sql.startswith(("EXPLAIN", "SHOW", "SET"))]
        if status not in (200, 302) or len(own) >= QUERIES:
            problems.append(f"{page}: status {status}, {len(own)} statements")
        problems += [f"{page}: {plan}" for plan in plans if reads_much(page, plan)]
    assert not problems, "\n\n".join(problems)


def reads_much(page: str, plan: Plan) -> bool:
    # The board's counts, the recent attempts and the dead letters have limits of their own.
    few = FEW.search(page) and not plan.tag
    return plan.reads is None or plan.reads > (FEW_READS if few else READS)
