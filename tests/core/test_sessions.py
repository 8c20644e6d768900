"""Sessions: a statement that nobody waits for any more is seen to end."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import DatabaseError

from django_leasequeue.core.sessions import end_statement, session_id
from django_leasequeue.runtime.connections import open_control
from tests.core.arrange import running
from tests.faults import Fault, Rival, broken, holding_job, make_error, wait_blocked
from tests.faults import session_id as asked
from tests.statements import count_statements
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")
SLEEP = {"mysql": "SELECT SLEEP(60)", "postgresql": "SELECT pg_sleep(60)"}
RUNNING = {
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %s"
    " AND info LIKE 'SELECT SLEEP%%'",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %s"
    " AND state = 'active' AND query LIKE 'SELECT pg_sleep%%'",
}


@SERVERS
def test_the_number_is_the_servers_own(connection, session, db_kind):
    other = session()
    assert session_id(other) is None  # not connected yet
    other.ensure_connection()
    with count_statements(other) as statements:
        found = session_id(other)
    assert statements == []
    assert found == asked(other, db_kind) != session_id(connection)
    other.close()
    assert session_id(other) is None


@pytest.mark.only_on("sqlite")
def test_sqlite_has_no_sessions(connection):
    connection.ensure_connection()
    assert session_id(connection) is None
    with count_statements(connection) as statements:
        assert end_statement(connection, 1) is False
    assert statements == []


def number(session) -> int:
    session.ensure_connection()
    found = session_id(session)
    assert found is not None
    return found


@SERVERS
def test_a_sleep_ends(connection, session):
    stuck = session()
    target = number(stuck)

    def sleep() -> object:
        with stuck.cursor() as cursor:
            cursor.execute(SLEEP[connection.vendor])
            return cursor.fetchone()[0]

    rival = Rival(sleep)
    wait_until(lambda: asks(connection, RUNNING[connection.vendor], target))
    assert end_statement(connection, target) is True
    with suppress(DatabaseError):
        assert rival.result() == 1  # SLEEP() says so when it is interrupted, or fails
    # Its answer is sent before the server's list says so.
    wait_until(lambda: not asks(connection, RUNNING[connection.vendor], target))


def asks(connection, sql: str, *params: object) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return bool(cursor.fetchone()[0])


@SERVERS
def test_a_wait_for_a_row_lock_ends_and_the_session_goes_on(connection, session, db_kind):
    (held,) = running(connection)
    waiting = session()
    target = number(waiting)

    def lock() -> None:
        with waiting.cursor() as cursor:
            cursor.execute("UPDATE leasequeue_job SET progress = NULL WHERE id = %s", [held.job_id])

    with holding_job(session(), held.job_id):
        rival = Rival(lock)
        wait_blocked(connection, db_kind, target)
        assert end_statement(connection, target) is True
        with pytest.raises(DatabaseError):
            rival.result()
    lock()
    assert session_id(waiting) == target


@SERVERS
def test_a_session_that_is_not_there(connection):
    assert end_statement(connection, 2**30) is False
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@SERVERS
def test_a_server_that_is_not_there(connection, session):
    ending = session()
    ending.ensure_connection()
    code = {"mysql": 2006}.get(connection.vendor, "08006")
    with broken(ending, Fault(code)):
        assert end_statement(ending, 1) is False
    assert ending.connection is None
    with ending.cursor() as cursor:
        cursor.execute("SELECT 1")


@SERVERS
def test_a_refusal_is_no_error(connection, session):
    ending = session()
    refusal = make_error(connection, {"mysql": 1095}.get(connection.vendor, "42501"))
    with broken(ending, Fault(refusal)):
        assert end_statement(ending, 1) is False


@pytest.mark.only_on("postgres")
def test_nothing_is_compiled(alias, connection):
    """The forbidden scan of a small table looks dear; compiling it takes a second."""
    control = open_control(alias, 60)
    try:
        with control.cursor() as cursor:
            cursor.execute("EXPLAIN ANALYZE SELECT id FROM leasequeue_worker ORDER BY host")
            plan = [row[0] for row in cursor.fetchall()]
    finally:
        control.close()
    assert not [line for line in plan if "JIT" in line]
