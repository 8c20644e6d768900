"""What one handler leaves in its thread: context, signals, and what statements do to a session."""

from __future__ import annotations

import contextvars
import decimal
import os
import signal
import threading
from contextlib import nullcontext

import pytest
from django.db import connections

from django_leasequeue.runtime.isolation import fresh_context, keep_signals
from django_leasequeue.runtime.sessions import Watch
from tests.thread_state import CHANGED, UNTOUCHED, change, state


def changed():
    change()
    return state()


# Contexts ----------------------------------------------------------------------------------------


def test_what_is_set_in_a_context_stays_in_it():
    before = state()
    assert fresh_context().run(changed) == CHANGED
    assert state() == before
    assert fresh_context().run(state) == before


def test_what_the_caller_has_set_does_not_reach_the_handler(settings):
    settings.TIME_ZONE = "Europe/Berlin"

    def run():
        decimal.setcontext(decimal.getcontext().copy())
        change()
        return fresh_context().run(state)

    assert contextvars.copy_context().run(run) == ("untouched", "en-us", "Europe/Berlin", 28)


def test_in_a_thread_of_its_own():
    seen = []
    thread = threading.Thread(
        target=lambda: seen.extend([fresh_context().run(changed), fresh_context().run(state)])
    )
    thread.start()
    thread.join()
    assert seen == [CHANGED, UNTOUCHED]


def test_connections_are_the_threads_on_both_sides():
    outside = connections["default"]
    assert fresh_context().run(lambda: connections["default"]) is outside
    made = fresh_context().run(lambda: connections.create_connection("default"))
    before = connections["default"]
    try:
        fresh_context().run(connections.__setitem__, "default", made)
        assert connections["default"] is made
    finally:
        connections["default"] = before


# Signals -----------------------------------------------------------------------------------------


def signals():
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM)
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    return (
        [signal.getsignal(number) for number in numbers],
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        descriptor,
        signal.getitimer(signal.ITIMER_REAL),
    )


def disturb():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.setitimer(signal.ITIMER_REAL, 60)


@pytest.fixture
def no_timer():
    """Takes away the timer that limits the test's own time, and puts it back."""
    before = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, *before)


@pytest.mark.usefixtures("no_timer")
@pytest.mark.parametrize("error", [None, SystemExit, KeyboardInterrupt])
def test_signals_are_put_back(error):
    def disturb_and_raise():
        disturb()
        if error is not None:
            raise error

    before = signals()
    with nullcontext() if error is None else pytest.raises(error), keep_signals():
        disturb_and_raise()
    assert signals() == before


def test_a_timer_from_before_is_left_running(no_timer):
    signal.setitimer(signal.ITIMER_REAL, 60)
    with keep_signals():
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 0


@pytest.mark.usefixtures("no_timer")
def test_the_wakeup_descriptor_is_put_back():
    before = signals()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        with keep_signals():
            signal.set_wakeup_fd(writer)
        assert signals() == before
    finally:
        os.close(reader)
        os.close(writer)


def test_in_another_thread_nothing_is_touched():
    before = signals()

    def run():
        with keep_signals():
            pass

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert signals()[:3] == before[:3]


# Statements --------------------------------------------------------------------------------------

LASTING = """
SET SESSION time_zone = '+01:00'
set @@session.sql_mode = ''
SET sql_mode = 'ANSI', innodb_lock_wait_timeout = 1
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET @counter = 0
SELECT @counter := @counter + 1
SELECT id INTO @id FROM t
SET NAMES latin1
SET ROLE reader
/* a comment */ SET search_path = other
-- a comment\\n SET search_path = other
/*!40101 SET NAMES utf8 */
SELECT 1; SET search_path = other
SET LOCAL search_path = a; SET search_path = b
RESET ALL
DISCARD TEMP
SELECT set_config('search_path', %s, false)
SELECT set_config('search_path', %s, %s)
SELECT set_config('a', 'b', false), set_config('c', 'd', true)
LOCK TABLES t READ, u WRITE
LOCK TABLE t WRITE
FLUSH TABLES WITH READ LOCK
USE other
CREATE TEMPORARY TABLE t (id int)
CREATE TEMP VIEW v AS SELECT 1
CREATE OR REPLACE TEMPORARY TABLE t (id int)
SELECT * INTO TEMP t FROM u
SELECT GET_LOCK('a', 1)
SELECT pg_advisory_lock(1)
SELECT pg_try_advisory_lock_shared(1, 2)
PREPARE p AS SELECT 1
PREPARE p FROM 'SELECT 1'
LISTEN channel
LOAD 'auto_explain'
DECLARE c CURSOR WITH HOLD FOR SELECT 1
PRAGMA busy_timeout = 1
PRAGMA main.cache_size=10
ATTACH DATABASE 'x' AS x
SET autocommit = 0
"""
PASSING = """
SELECT 1
SELECT "set" FROM "t" WHERE a = %s
UPDATE t SET a = %s
INSERT INTO t (use, lock) VALUES (%s, %s)
INSERT INTO temperatures (id) VALUES (%s)
INSERT INTO t (a) VALUES (%s) ON DUPLICATE KEY UPDATE a = 1
SET CONSTRAINTS ALL IMMEDIATE
SET STATEMENT max_statement_time = 1 FOR SELECT 1
SELECT set_config('app.tenant', %s, true)
SELECT pg_advisory_xact_lock(1)
SELECT pg_advisory_unlock(1)
SELECT RELEASE_LOCK('a')
LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE
UNLOCK TABLES
CREATE TABLE temp_t (id int)
LOAD DATA LOCAL INFILE 'x' INTO TABLE t
NOTIFY channel
SAVEPOINT a
ROLLBACK TO SAVEPOINT a
RELEASE SAVEPOINT a
PRAGMA foreign_key_check
PRAGMA table_info(t)
SELECT * FROM pg_prepared_statements
BEGIN
COMMIT
START TRANSACTION
/* leasequeue:claim */ UPDATE t SET a = 1
"""


def lines(text):
    return [line.replace("\\n", "\n") for line in text.strip().splitlines()]


def watched(*statements, local_lasts=False):
    seen = Watch(local_lasts=local_lasts)
    for statement in statements:
        assert seen(lambda sql, *rest: sql, statement, None, False, {"connection": None}) == (
            statement
        )
    return seen


@pytest.mark.parametrize("sql", lines(LASTING))
def test_a_statement_that_outlives_its_transaction(sql):
    assert watched(sql, "SELECT 1").changed
    assert watched(sql.lower().encode(), "SELECT 1").changed


@pytest.mark.parametrize("sql", lines(PASSING))
def test_a_statement_that_does_not(sql):
    seen = watched(sql)
    assert not (seen.changed or seen.once)


def test_local_is_another_word_for_session_on_some_servers():
    assert not watched("SET LOCAL lock_timeout = 1").changed
    assert watched("SET LOCAL innodb_lock_wait_timeout = 1", local_lasts=True).changed


def test_the_next_transactions_isolation_until_that_transaction():
    assert watched("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").once
    assert not watched("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SELECT 1").once


@pytest.mark.parametrize(
    ("statements", "unfinished"),
    [
        (["BEGIN"], True),
        (["start transaction read only", "SELECT 1"], True),
        (["SET autocommit=0"], True),
        (["BEGIN", "COMMIT"], False),
        (["BEGIN", "ROLLBACK"], False),
        (["BEGIN", "ROLLBACK TO SAVEPOINT a"], True),
        (["BEGIN", "rollback work to a"], True),
        (["COMMIT", "BEGIN IMMEDIATE"], True),
    ],
)
def test_a_transaction_begun_by_hand(statements, unfinished):
    assert watched(*statements).unfinished is unfinished


def test_long_statements_cost_no_more_than_short_ones():
    """Only their beginning is looked at, and kept for the next time."""
    assert not watched("SELECT " + "%s, " * 600 + "GET_LOCK('a', 1)").changed
