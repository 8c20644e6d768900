"""The suite's own instruments: what is left behind is seen, and a worker's log is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connections, transaction

from tests.fixtures import database, leaks
from tests.statements import count_statements
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess


@pytest.fixture
def left(queue_db, monkeypatch):
    """What is new since now, without the usual grace."""
    monkeypatch.setattr(leaks, "GRACE", 0)
    before = leaks.Snapshot.take(queue_db)
    return lambda: before.left(queue_db)


def test_nothing_left(left):
    assert left() == []


def test_a_thread_left_is_seen(left):
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="idler", daemon=True)
    thread.start()
    found = left()
    end.set()
    thread.join()
    assert found == ["threads left behind: ['idler']"]


def test_a_child_left_is_seen(left):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = left()
        child.communicate(b"\n")
    assert found == [f"child processes left behind: [{child.pid}]"]


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_connection_left_is_seen(left, alias):
    with closing(connections.create_connection(alias)) as connection:
        connection.ensure_connection()
        found = left()
    assert [text.partition(":")[0] for text in found] == ["server connections left behind"]


def test_an_open_transaction_is_seen_and_undone(queue_db):
    transaction.atomic().__enter__()
    assert database._open_transaction(queue_db) == ["a transaction left open"]
    assert not queue_db.in_atomic_block


@pytest.mark.leaves_reserved
def test_a_reserved_job_is_seen(queue_db):
    with queue_db.cursor() as cursor:
        cursor.execute("INSERT INTO leasequeue_job (job_type, status) VALUES ('a.b', 'reserved')")
    (problem,) = database._reserved_jobs(queue_db)
    assert problem.startswith("jobs left reserved: [")


def test_each_test_begins_with_empty_tables(queue_db):
    with queue_db.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM leasequeue_job")
        assert cursor.fetchone() == (0,)


def test_sessions_are_independent(connection, second_connection):
    rival = second_connection()
    rival.ensure_connection()
    with count_statements(rival) as statements, rival.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert statements == ["SELECT 1"]
    assert rival.connection is not connection.connection


SPEAKER = """
import json, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
for n in (1, 2):
    print(json.dumps({"event": "job_claimed", "job_id": n}), file=sys.stderr, flush=True)
print("no JSON", file=sys.stderr, flush=True)
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def speaker(tmp_path: Path):
    process = WorkerProcess([sys.executable, "-c", SPEAKER], os.environ, tmp_path / "out")
    yield process
    process.kill()


def test_a_workers_log_is_read_while_it_runs(speaker):
    assert speaker.wait_event("job_claimed", count=2)["job_id"] == 2
    assert speaker.wait_event("job_claimed", job_id=1) == speaker.events[0]
    wait_until(lambda: "ready" in speaker.output)
    speaker.signal(signal.SIGTERM)
    assert speaker.wait() == 7
    assert speaker.lines == ["no JSON"]


def test_an_event_that_never_comes_shows_the_log(speaker):
    speaker.wait_event("job_claimed", count=2)
    speaker.signal(signal.SIGKILL)
    with pytest.raises(AssertionError, match=r"no job_done : the worker ended\n.*job_claimed"):
        speaker.wait_event("job_done")
    assert speaker.wait() == -signal.SIGKILL


def test_a_command_runs_on_the_test_database(manage, connection):
    answer = manage("shell", "-c", "from django.db import connection as c; print(c.settings_dict)")
    assert answer.returncode == 0, answer.stderr
    assert repr(connection.settings_dict["NAME"]) in answer.stdout
