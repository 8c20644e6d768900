"""C6: whatever a handler leaves on its connection, the next job in the thread finds a clean one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import close_old_connections, connection, connections, transaction

from django_leasequeue import JobTimeout, cancel, enqueue
from tests.core.arrange import run
from tests.core.reports import make_report, reports
from tests.field.slot import Slot, opened

MYSQL = pytest.mark.only_on("mariadb", "mysql")
POSTGRES = pytest.mark.only_on("postgres")
SQLITE = pytest.mark.only_on("sqlite")

#: What the next job must find as the first one found it.
FACTS = {
    "mysql": (
        "SELECT @@time_zone, @@sql_mode, @@innodb_lock_wait_timeout, @@autocommit, DATABASE(),"
        " @left, IS_USED_LOCK('left'), @@foreign_key_checks, @@character_set_client"
    ),
    "postgresql": (
        "SELECT current_setting('TimeZone'), current_setting('search_path'),"
        " current_setting('statement_timeout'), current_setting('transaction_isolation'),"
        " (SELECT COUNT(*) FROM pg_listening_channels()), to_regclass('pg_temp.left_here'),"
        " (SELECT COUNT(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),"
        " (SELECT COUNT(*) FROM pg_prepared_statements WHERE name = 'left_here'),"
        " (SELECT COUNT(*) FROM pg_cursors)"
    ),
    "sqlite": (
        "SELECT (SELECT timeout FROM pragma_busy_timeout), (SELECT COUNT(*) FROM"
        " pragma_database_list), (SELECT COUNT(*) FROM sqlite_temp_master)"
    ),
}
ISOLATION = {"mariadb": "SELECT @@tx_isolation", "mysql": "SELECT @@transaction_isolation"}


@pytest.fixture
def slot(connection):
    with opened() as slot:
        yield slot


def ask(sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def facts(kind: str) -> list[Any]:
    """What a handler can tell of its session; and it can write and commit, by itself."""
    assert not connection.in_atomic_block
    assert connection.get_autocommit()
    return [ask(FACTS[connection.vendor]), ask(ISOLATION[kind]) if kind in ISOLATION else None]


def wrapper() -> int:
    """Return which driver connection this is; kept alive, its number is not given out again."""
    connection.ensure_connection()
    seen.append(connection.connection)
    return id(connection.connection)


seen: list[Any] = []


@pytest.fixture(autouse=True)
def _forget_connections():
    yield
    seen.clear()


# Transactions ------------------------------------------------------------------------------------


def turns_autocommit_off():
    transaction.set_autocommit(False)
    make_report("left")


def never_leaves_atomic():
    transaction.atomic().__enter__()
    make_report("left")


def closes_inside():
    with transaction.atomic():
        make_report("left")
        connection.close()


def closes_old_connections_inside():
    """Django's close_old_connections() takes autocommit that is off for a thing left behind."""
    with transaction.atomic():
        make_report("left")
        close_old_connections()


def turns_autocommit_off_and_closes():
    transaction.set_autocommit(False)
    make_report("left")
    connection.close()


def begins_by_hand():
    run(connection, "BEGIN")
    make_report("left")


def reads_in_a_transaction_begun_by_hand():
    run(connection, "BEGIN")
    ask("SELECT COUNT(*) FROM generated_reports")


def begins_again_after_committing():
    run(connection, "BEGIN")
    make_report("kept")
    run(connection, "COMMIT")
    run(connection, "BEGIN")
    make_report("left")


def turns_autocommit_off_by_hand():
    run(connection, "SET autocommit = 0")
    make_report("left")


def next_job_commits(slot: Slot) -> None:
    """The next job is not inside what the last one left: what it writes is there for everybody."""
    slot.result(lambda: make_report("next"))
    assert "next" in reports()


@pytest.mark.parametrize(
    "work",
    [
        turns_autocommit_off,
        never_leaves_atomic,
        closes_inside,
        closes_old_connections_inside,
        turns_autocommit_off_and_closes,
        begins_by_hand,
        reads_in_a_transaction_begun_by_hand,
        begins_again_after_committing,
        pytest.param(turns_autocommit_off_by_hand, marks=MYSQL),
    ],
)
def test_a_transaction_left_open_is_rolled_back_and_the_attempt_has_failed(slot, db_kind, work):
    """(a), (b), (c), (f), and with SQL of one's own: the rows are gone, it has not completed."""
    before = slot.result(lambda: facts(db_kind))
    outcome = slot.attempt(work)
    assert outcome.end == "failed"
    assert "default" in outcome.error.text
    assert set(reports()) <= {"kept"}
    assert slot.result(lambda: facts(db_kind)) == before
    next_job_commits(slot)


def close_it():
    connection.close()  # the thread's own: `connection` is one name for all of them


@pytest.mark.parametrize("close", [close_it, close_old_connections])
@pytest.mark.parametrize("atomic", [True, False])
def test_closing_inside_the_fenced_transaction(slot, db_kind, atomic, close):
    """(c), (f): its end finds no connection: nothing is committed, neither rows nor `done`."""

    def work(context):
        with nullcontext() if atomic else context.complete():
            make_report("left")
            close()

    policy = {"atomic": True, "timeout": 1} if atomic else {}
    before = slot.result(lambda: facts(db_kind))
    assert slot.attempt(work, takes_context=True, **policy).end == "failed"
    assert reports() == []
    assert slot.result(lambda: facts(db_kind)) == before
    next_job_commits(slot)


def test_a_transaction_finished_by_hand_is_nobodys_business(slot):
    def work():
        run(connection, "BEGIN")
        make_report("kept")
        run(connection, "COMMIT")
        return wrapper()

    assert slot.result(wrapper) == slot.result(work) == slot.result(wrapper)
    assert reports() == ["kept"]


# Sessions ----------------------------------------------------------------------------------------


def leaves(sql: str, *marks: Any) -> Any:
    return pytest.param(sql, marks=marks, id=sql[:40])


@pytest.mark.parametrize(
    "sql",
    [
        leaves("SET SESSION time_zone = '+01:00'", MYSQL),
        leaves("SET SESSION sql_mode = 'ANSI'", MYSQL),
        leaves("SET innodb_lock_wait_timeout = 3", MYSQL),
        leaves("SET LOCAL innodb_lock_wait_timeout = 3", MYSQL),
        leaves("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", MYSQL),
        leaves("SET foreign_key_checks = 0", MYSQL),
        leaves("SET NAMES latin1", MYSQL),
        leaves("SET @left = 1", MYSQL),
        leaves("SELECT @left := 1", MYSQL),
        leaves("LOCK TABLES auth_user READ", MYSQL),
        leaves("USE information_schema", MYSQL),
        leaves("SELECT GET_LOCK('left', 1)", MYSQL),
        leaves("SET TIME ZONE 'Asia/Tokyo'", POSTGRES),
        leaves("SET search_path = pg_catalog", POSTGRES),
        leaves("SELECT set_config('statement_timeout', '9s', false)", POSTGRES),
        leaves("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", POSTGRES),
        leaves("RESET ALL", POSTGRES),
        leaves("LISTEN left_here", POSTGRES),
        leaves("CREATE TEMP TABLE left_here (id int)", POSTGRES),
        leaves("SELECT pg_advisory_lock(7)", POSTGRES),
        leaves("PREPARE left_here AS SELECT 1", POSTGRES),
        leaves("DECLARE left_here CURSOR WITH HOLD FOR SELECT 1", POSTGRES),
        leaves("PRAGMA busy_timeout = 1", SQLITE),
        leaves("ATTACH DATABASE ':memory:' AS left_here", SQLITE),
        leaves("CREATE TEMP TABLE left_here (id int)", SQLITE),
    ],
)
def test_what_a_statement_changes_is_not_there_for_the_next_job(slot, db_kind, sql):
    """(d), (e), (g): at a regular end, too. The wrapper watches the second connection as well."""
    before = slot.result(lambda: facts(db_kind))
    for _ in range(2):
        used = slot.result(wrapper)
        assert slot.attempt(lambda: ask_if_any(sql)).end == "completed"
        assert slot.result(lambda: facts(db_kind)) == before
        assert slot.result(wrapper) != used
    next_job_commits(slot)


def ask_if_any(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        if cursor.description:
            cursor.fetchall()


@MYSQL
def test_the_isolation_of_a_next_transaction_that_never_came(slot):
    used = slot.result(wrapper)
    slot.result(lambda: run(connection, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"))
    assert slot.result(wrapper) != used


@MYSQL
def test_a_temporary_table(slot):
    sql = "CREATE TEMPORARY TABLE auth_user (id int)"
    before = slot.result(lambda: ask("SHOW COLUMNS FROM auth_user"))
    assert slot.attempt(lambda: run(connection, sql)).end == "completed"
    assert slot.result(lambda: ask("SHOW COLUMNS FROM auth_user")) == before


def test_a_change_that_the_handler_itself_threw_away(slot, db_kind):
    """The next session is a clean one, and is kept."""
    sql = "PRAGMA busy_timeout = 1" if db_kind == "sqlite" else "SET lock_timeout = 1"
    if db_kind in ("mariadb", "mysql"):
        sql = "SET innodb_lock_wait_timeout = 3"

    def work():
        run(connection, sql)
        connection.close()
        return wrapper()

    assert slot.result(work) == slot.result(wrapper)


# What is no change -------------------------------------------------------------------------------


def completes(context):
    with context.complete():
        make_report(context.idempotency_key)


def writes():
    make_report("atomic")


def in_savepoints():
    with transaction.atomic(), transaction.atomic():
        make_report("in savepoints")


def enqueues():
    enqueue("nobody's", queue="elsewhere")
    with transaction.atomic():
        enqueue("nobody's", queue="elsewhere")
    cancel(enqueue("nobody's", queue="elsewhere").id)


def sets_locally():
    with transaction.atomic():
        run(connection, "SET LOCAL lock_timeout = 1000")
        run(connection, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        ask("SELECT set_config('app.tenant', '7', true)")
        run(connection, "SET CONSTRAINTS ALL DEFERRED")
        ask("SELECT pg_advisory_xact_lock(7)")


@pytest.mark.parametrize(
    ("work", "policy"),
    [
        (completes, {"takes_context": True}),
        (writes, {"atomic": True, "timeout": 1}),
        (in_savepoints, {}),
        (enqueues, {}),
        pytest.param(sets_locally, {}, marks=POSTGRES),
    ],
    ids=["completes", "atomic", "in_savepoints", "enqueues", "sets_locally"],
)
def test_the_connection_is_kept_when_nothing_lasts(slot, work, policy):
    used = slot.result(wrapper)
    assert slot.attempt(work, **policy).end == "completed"
    assert slot.result(wrapper) == used


def test_what_the_project_sets_when_connecting_is_no_change(slot, db_kind):
    """Reconnecting included: else every job would cost a new connection."""
    first = slot.result(wrapper)
    slot.attempt(never_leaves_atomic)
    second = slot.result(wrapper)
    assert first != second == slot.result(wrapper)


def test_any_irregular_end_costs_the_connection(slot):
    def raises() -> Callable[..., Any]:
        make_report("before")
        raise ValueError

    used = slot.result(wrapper)
    assert slot.attempt(raises).end == "failed"
    assert slot.result(wrapper) != used


# C20 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["its own", "atomic", "complete"])
def test_a_time_out_in_the_middle_of_a_rollback(slot, form):
    """Nobody knows how far the rollback came, so that connection is not used again.

    Django goes on to turn autocommit on, which would commit what the handler has written.
    """

    def interrupted():
        slot.executor.interrupts.deliver(JobTimeout("in the middle"))

    def work(context):
        vars(connections["default"])["_rollback"] = interrupted
        block = {"its own": transaction.atomic, "complete": context.complete}.get(form, nullcontext)
        with block():
            make_report("left")
            raise ValueError

    policy = {"atomic": True, "timeout": 1} if form == "atomic" else {}
    used = slot.result(wrapper)
    assert slot.attempt(work, takes_context=True, **policy).end == "timed_out"
    assert reports() == []
    assert slot.result(wrapper) != used
    slot.result(lambda: make_report("left"))  # the key is locked by nobody
    assert reports() == ["left"]
