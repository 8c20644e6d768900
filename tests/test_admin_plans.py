"""No page of the admin reads a whole table, or asks for much, whatever lies there."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client, override_settings

from django_leasequeue.admin import filters, paging
from django_leasequeue.core import dead_search, dives, recent
from tests.bench_admin.fill import Filling, analyze
from tests.bench_admin.measure import QUERIES, SECONDS, Measured
from tests.bench_admin.pages import pages
from tests.core.plans import Plan, explained
from tests.statements import count_statements

ROWS = 10_000
#: In place of ten thousand: rows of a list, and recent attempts.
LIMIT = 1000
SAMPLE = 500
#: In place of fifty thousand: jobs of a type that are looked through, and dead letters.
WINDOW = 100
#: MariaDB makes a table of the rows that it counts, and reads that too.
READS = 2 * LIMIT + 500
#: A list that only some jobs match.
FEW_READS = 600
FEW = re.compile(
    r"scheduled|retrying|reserved|expired|parked|cancelled|rare|none|search|a job|mass"
)
TABLES = re.compile(r"(?:/\* leasequeue:(\w+) \*/ )?(SELECT) .*leasequeue_job", re.DOTALL)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.leaves_reserved
@override_settings(ROOT_URLCONF="tests.bench_admin.pages")
def test_each_page(connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "COUNT_LIMIT", LIMIT)
    monkeypatch.setattr(recent, "_SAMPLE", SAMPLE)
    monkeypatch.setattr(filters, "_WINDOW", WINDOW)
    monkeypatch.setattr(dead_search, "_WINDOW", WINDOW)
    monkeypatch.setattr(dead_search, "MOST_DEAD", WINDOW)
    monkeypatch.setattr(dives, "_likely", {})  # as in a process that has just started
    worst = Filling(connection, ROWS, queues=8).fill()
    user = User.objects.create_superuser("root")
    client = Client()
    client.force_login(user)
    # A tenth of the rows is little enough for MySQL to sort; of more it walks the primary key.
    sorts = READS if connection.vendor == "mysql" and not is_mariadb(connection) else FEW_READS
    problems = []
    for page, url in pages(worst, user.pk):
        if "o=1" in url:  # the same the other way round
            continue
        found = problems_of(connection, client, page, url, sorts)
        if found:  # a server plans by a sample of the table: what is bad by two of them is ours
            analyze(connection)
            found = problems_of(connection, client, page, url, sorts)
        problems += found
    assert not problems, "\n\n".join(problems)


def problems_of(
    connection: BaseDatabaseWrapper, client: Client, page: str, url: str, sorts: int
) -> list[str]:
    with explained(connection, TABLES) as plans, count_statements(connection) as statements:
        status = client.get(url).status_code
    own = [sql for sql in statements if not sql.startswith(("EXPLAIN", "SHOW", "SET"))]
    problems = []
    if status not in (200, 302) or len(own) >= QUERIES:
        problems.append(f"{page}: status {status}, {len(own)} statements")
    problems += [f"{page}: {plan}" for plan in plans if reads_much(page, plan)]
    problems += [f"{page}: {plan}" for plan in plans if scans_or_sorts_much(plan, sorts)]
    return problems


def reads_much(page: str, plan: Plan) -> bool:
    # The board's counts and the recent attempts have limits of their own.
    few = plan.tag == "dead" or (FEW.search(page) and not plan.tag)
    return plan.reads is None or plan.reads > (FEW_READS if few else READS)


def scans_or_sorts_much(plan: Plan, sorts: int) -> bool:
    """Tell whether nothing ends a scan, or many rows are sorted for the few that are shown."""
    sorted_rows = (plan.reads or 0) if plan.sorts and "ORDER BY" in plan.sql else 0
    return (plan.scans and "LIMIT" not in plan.sql) or sorted_rows > sorts


def is_mariadb(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "mysql_is_mariadb", False))


def test_a_page_is_judged_by_its_worst() -> None:
    fine = Measured("jobs", 200, QUERIES - 1, seconds=0.1, worst=SECONDS - 0.01)
    assert fine.problem == ""
    assert "at worst" in fine._replace(worst=SECONDS).problem
    assert fine._replace(queries=QUERIES).problem and fine._replace(status=500).problem
