"""Every wait of the worker's own connections ends well below its lease."""

from __future__ import annotations

import signal
import time
from contextlib import closing

import pytest
from django.db.backends.signals import connection_created

from django_leasequeue import enqueue
from django_leasequeue.core.transaction import ask, run
from django_leasequeue.runtime.connections import bounds_for, open_control
from tests.faults import REPEAT, make_error
from tests.process import rows

_VARIABLES = {
    "mysql": {
        "row_lock": "SELECT @@innodb_lock_wait_timeout",
        "metadata_lock": "SELECT @@lock_wait_timeout",
    },
    "postgresql": {
        "row_lock": "SELECT setting::int / 1000.0 FROM pg_settings WHERE name = 'lock_timeout'",
        "network": (
            "SELECT setting::int / 1000.0 FROM pg_settings WHERE name = 'statement_timeout'"
        ),
    },
    "sqlite": {},
}


@pytest.mark.parametrize("lease", [60, 5, 1.2])
def test_the_sessions_bounds_are_below_the_lease(queue_db, lease):
    with closing(open_control("default", lease)) as control, control.cursor() as cursor:
        for name, sql in _VARIABLES[control.vendor].items():
            cursor.execute(sql)
            (seconds,) = cursor.fetchone()
            assert 0 < seconds < lease, name
            assert seconds <= max(1, bounds_for(lease)[name]), name
        params = control.get_connection_params()
    limits = ("connect_timeout", "read_timeout", "write_timeout", "timeout")
    for name in set(limits) & set(params):
        assert 0 < params[name] < max(lease, 2.1), name  # libpq knows no connect_timeout below 2
    if control.vendor == "postgresql":
        assert 0 < params["tcp_user_timeout"] / 1000 < lease


def reads(connection) -> None:
    assert list(map(tuple, ask(connection, "SELECT 1"))) == [(1,)]


def writes(connection) -> None:
    run(connection, lambda cursor: cursor.execute("SELECT 1"))


@pytest.mark.parametrize("asks", [reads, writes])
def test_a_session_that_is_half_prepared_is_not_used(queue_db, asks):
    """What interrupts its preparation passes, and the next try would have had no bounds."""
    refused: list[object] = []

    def refuse(*, connection, **kwargs) -> None:
        if "leasequeue_session" in vars(connection) and not refused:
            refused.append(connection.connection)
            raise make_error(connection, REPEAT[connection.vendor][0])

    # Before the queue's own receiver, as a project's may be.
    receivers = connection_created.receivers
    connection_created.connect(refuse, dispatch_uid="refuse")
    receivers.insert(0, receivers.pop())
    connection_created.sender_receivers_cache.clear()
    try:
        with closing(open_control("default", 60)) as control:
            asks(control)
            assert refused
            for sql in _VARIABLES[control.vendor].values():
                with control.cursor() as cursor:
                    cursor.execute(sql)
                    assert 0 < cursor.fetchone()[0] < 60
            assert control.connection not in refused
    finally:
        connection_created.disconnect(dispatch_uid="refuse")


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_server_that_falls_silent_is_noticed_within_the_lease(
    queue_db, worker_process, proxy, by_proxy
):
    worker = worker_process("--lease", "6", env=by_proxy)
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)  # it is connected
    began = time.monotonic()
    proxy.stall()
    worker.wait_event("database_lost")
    assert time.monotonic() - began < 6
    proxy.mend()
    job_id = enqueue("proc.note").id
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_held_row_holds_nobody_up(queue_db, worker_process, second_connection):
    """The rival's lock is older than any bound would be: rows are skipped, not waited for."""
    held, free = enqueue("proc.note").id, enqueue("proc.note").id
    rival = second_connection()
    with rival.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM leasequeue_job WHERE id = %s FOR UPDATE", [held])
        worker = worker_process()
        worker.wait_event("job_completed", job_id=free)
        assert rows.job(held).status == "ready"
        cursor.execute("ROLLBACK")
    worker.wait_event("job_completed", job_id=held)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
