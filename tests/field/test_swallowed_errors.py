"""A handler that swallows a database error: on some servers half its work, or none, is left.

Whatever is left, the attempt has failed and nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connections, transaction

from django_leasequeue.core.settle import Ending, settle
from reports.models import GeneratedReport
from tests.core.arrange import job, outcomes, run, running
from tests.core.reports import make_report, reports
from tests.faults import Rival, holding, session_id, wait_blocked

MYSQL = pytest.mark.only_on("mariadb", "mysql")
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.fixture(params=["complete", "atomic"])
def failing(request, connection, declare, attempt) -> Callable[[Callable[[Any], object]], Any]:
    """Run a handler with these effects, which must fail and leave none; returns its error."""
    atomic = request.param == "atomic"

    def check(effects: Callable[[Any], object]) -> Any:
        @declare("arranged", takes_context=True, atomic=atomic)
        def handler(context, n):
            with nullcontext() if atomic else context.complete():
                effects(context)

        (claimed,) = running(connection)
        before = rows()
        outcome = attempt(claimed)
        assert (outcome.end, outcome.settled) == ("failed", False)
        assert rows() == before
        settle(connection, [Ending(claimed.lease, outcome)])
        assert (job(claimed.job_id).status, outcomes(claimed.job_id)) == ("ready", ["failed"])
        return outcome.error

    return check


def lock_wait(seconds: int) -> None:
    sql = {
        "mysql": f"SET SESSION innodb_lock_wait_timeout = {seconds}",
        "postgresql": f"SET lock_timeout = {seconds * 1000}",
    }
    connection = connections["default"]
    run(connection, sql[connection.vendor])


def rows() -> list[tuple[str, str]]:
    """Return every report, with the column that these handlers change."""
    return list(
        GeneratedReport.objects.order_by("pk").values_list("idempotency_key", "report_month")
    )


def update(key: str, month: str) -> None:
    GeneratedReport.objects.filter(idempotency_key=key).update(report_month=month)


def break_the_unique_key() -> None:
    make_report("twice")
    make_report("twice")


def test_a_duplicate_without_a_savepoint(failing):
    """C3: PostgreSQL has aborted the transaction, the others would commit the rest."""

    def effects(context: Any) -> None:
        with suppress(IntegrityError):
            break_the_unique_key()

    assert "swallowed" in failing(effects).text


def test_raw_sql_that_is_wrong(failing):
    def effects(context: Any) -> None:
        make_report("before")
        with suppress(DatabaseError):
            run(connections["default"], "SELECT no_such_column FROM generated_reports")

    assert "swallowed" in failing(effects).text


def test_the_transaction_marked_for_rollback(failing):
    def effects(context: Any) -> None:
        make_report("before")
        transaction.set_rollback(True)

    assert "rollback" in failing(effects).text


def test_an_error_that_a_savepoint_has_undone_is_none(connection, declare, attempt):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            make_report("before")
            with suppress(IntegrityError), transaction.atomic():
                break_the_unique_key()
            make_report("after")

    (claimed,) = running(connection)
    assert attempt(claimed).settled
    assert reports() == ["after", "before"]


@SERVERS
@pytest.mark.parametrize("swallowed", [True, False])
def test_a_lock_wait_that_ends_half_way(failing, session, connection, swallowed):
    """A7: MySQL and MariaDB have undone the one statement (1205) and would commit the others."""
    for key in ("one", "two"):
        make_report(key)
    lock = "SELECT id FROM generated_reports WHERE idempotency_key = 'two' FOR UPDATE"

    def effects(context: Any) -> None:
        lock_wait(1)
        GeneratedReport.objects.filter(idempotency_key="one").delete()
        with suppress(*([OperationalError] if swallowed else [])):
            update("two", "2043-01")

    with holding(session(), lock, ()):
        assert ("swallowed" in failing(effects).text) is swallowed


@MYSQL
@pytest.mark.parametrize("nested", [True, False])
def test_a_real_deadlock(failing, session, connection, db_kind, nested):
    """A6: everything is rolled back, savepoints included (1305), and the handler goes on."""
    number: list[int] = []
    rival = session()
    for key in ("a1", *(f"b{n}" for n in range(40))):
        make_report(key)

    def cross() -> None:
        """Hold all of b, more than the handler ever writes, and ask for a."""
        number.append(session_id(rival, db_kind))
        sql = "UPDATE generated_reports SET report_month = '2043-01' WHERE idempotency_key LIKE %s"
        with holding(rival, sql, ["b%"]):
            entered.set_result(None)
            run(rival, sql, ["a%"])

    def effects(context: Any) -> None:
        update("a1", "2044-01")
        crossing.append(Rival(cross))
        entered.result(10)
        wait_blocked(session(), db_kind, number[0])
        with suppress(OperationalError), transaction.atomic() if nested else nullcontext():
            update("b1", "2044-01")

    entered: Future[None] = Future()
    crossing: list[Rival[None]] = []
    assert "swallowed" in failing(effects).text
    crossing[0].result()


# Statements that commit by themselves (C4) -------------------------------------------------------


@pytest.fixture
def no_table(connection):
    yield
    run(connection, "DROP TABLE IF EXISTS field_made_by_a_handler")


@MYSQL
@pytest.mark.usefixtures("no_table")
def test_ddl_in_a_handler(connection, declare, attempt):
    """C4: what came before it is committed, which nothing can undo; the job is not done by it."""

    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            make_report("before")
            run(connections["default"], "CREATE TABLE field_made_by_a_handler (id int)")
            make_report("after")

    (claimed,) = running(connection)
    outcome = attempt(claimed)
    assert (outcome.end, outcome.settled) == ("failed", False)
    assert "DDL" in outcome.error.text
    assert reports() == ["before"]
    settle(connection, [Ending(claimed.lease, outcome)])
    assert outcomes(claimed.job_id) == ["failed"]


@pytest.mark.usefixtures("no_table")
def test_a_temporary_table_commits_nothing(connection, declare, attempt):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            make_report("before")
            run(connections["default"], "CREATE TEMPORARY TABLE field_made_by_a_handler (id int)")

    (claimed,) = running(connection)
    assert attempt(claimed).settled
    assert reports() == ["before"]
