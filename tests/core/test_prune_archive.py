"""The archive: on the disk before the delete commits, whole members, nothing lost at a kill."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import textwrap
import tracemalloc
from datetime import datetime
from pathlib import Path

import pytest
from django.db import DatabaseError, OperationalError

from django_leasequeue import LeaseQueueError, enqueue, prune
from django_leasequeue.core import archive as archive_module
from django_leasequeue.core import pruning
from django_leasequeue.core.archive import open_archive
from django_leasequeue.models import Job, JobAttempt, JobEffect
from tests.core.arrange import run, snapshot, write
from tests.core.pruning import age, archived, left, old_jobs

pytestmark = pytest.mark.usefixtures("queue_db")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.jsonl.gz"


def ids_in(path):
    return [record["job"]["id"] for record in archived(path)]


def append(path, *lines):
    with open_archive(path) as archive:
        archive.append(lines)


# The file


def test_a_record_holds_every_column(connection, path):
    payload = {"text": "Grüße\n\u2028", "float": 1e22, "deep": [[[]]], "big": 2**62}
    job = enqueue("arranged", payload, key="k")
    write(
        connection, job.id, status="done", claims=2, attempts=2, lease_token=b"\x00'\xff" * 5 + b"t"
    )
    age(connection, [job.id], 40)
    for number in (2, 1):
        JobAttempt.objects.create(
            job_id=job.id, number=number, token=bytes([number]) * 16, outcome="failed",
            error_text="no \n way", frames=["a.py:1 f"],
        )  # fmt: skip
    JobEffect.objects.create(job_id=job.id, name="chargé", number=2)
    row = Job.objects.get(pk=job.id)
    assert prune(older_than=0, archive=path).jobs == 1
    ((record),) = archived(path)
    assert set(record["job"]) == {str(field.column) for field in Job._meta.concrete_fields}
    assert record["job"]["payload"] == payload == row.payload
    assert record["job"]["result"] is None
    assert record["job"]["context"] == {}
    assert record["job"]["lease_token"] == (b"\x00'\xff" * 5 + b"t").hex()
    assert datetime.fromisoformat(record["job"]["finished_at"]) == row.finished_at
    assert [one["number"] for one in record["attempts"]] == [1, 2]
    assert record["attempts"][1]["token"] == "02" * 16
    assert record["attempts"][0]["frames"] == ["a.py:1 f"]
    assert record["attempts"][0]["error_text"] == "no \n way"
    assert [(one["name"], one["number"]) for one in record["effects"]] == [("chargé", 2)]
    assert set(record["attempts"][0]) == {str(f.column) for f in JobAttempt._meta.concrete_fields}


@pytest.mark.only_on("mariadb", "sqlite")
def test_json_text_with_line_breaks_stays_one_line(connection, path):
    (job_id,) = old_jobs(connection)
    write(connection, job_id, payload='{"a":\r\n 1}')
    prune(older_than=0, archive=path)
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 1
    assert archived(path)[0]["job"]["payload"] == {"a": 1}


def test_a_member_for_each_batch_and_later_runs_append(connection, path):
    first = old_jobs(connection, 5)
    prune(older_than=0, batch=2, archive=path)
    second = old_jobs(connection, 1)
    prune(older_than=0, archive=path)
    assert ids_in(path) == first + second
    assert path.read_bytes().count(b"\x1f\x8b\x08") == 4
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_others_may_read_is_closed_to_them(connection, path):
    append(path, "{}")
    path.chmod(0o644)
    append(path, "{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("missing", [1, 7, 8, 20])
def test_what_a_killed_run_left_is_cut_off(path, missing):
    append(path, '{"job": 1}')
    whole = path.read_bytes()
    append(path, '{"job": 2}')
    path.write_bytes(path.read_bytes()[:-missing])
    append(path, '{"job": 3}')
    assert archived(path) == [{"job": 1}, {"job": 3}]
    path.write_bytes(whole + b"\0" * 4000)
    append(path, '{"job": 4}')
    assert archived(path) == [{"job": 1}, {"job": 4}]


@pytest.mark.parametrize("size", [archive_module._PIECE - 1, archive_module._PIECE, 5 << 20])
def test_whole_members_of_any_size_stay(path, size):
    line = json.dumps("x" * (size - 3))
    noise = json.dumps(os.urandom(1 << 19).hex())
    append(path, line)
    append(path, noise, line)
    append(path, "{}")
    assert archived(path) == [json.loads(text) for text in (line, noise, line, "{}")]


@pytest.mark.parametrize("content", [b"no gzip", b'{"job": 1}\n', b"\x1f\x8b\x08" + b"x" * 40])
def test_another_kind_of_file_is_refused(connection, path, content):
    ids = old_jobs(connection, 2)
    path.write_bytes(content)
    with pytest.raises(LeaseQueueError, match="no gzip file"):
        prune(older_than=0, archive=path)
    assert (left(), path.read_bytes()) == (ids, content)


def test_paths_that_are_refused(connection, path, tmp_path, monkeypatch):
    ids = old_jobs(connection, 2)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for wrong, text in [(tmp_path, "cannot be written"), (fifo, "no ordinary file")]:
        with pytest.raises(LeaseQueueError, match=text):
            prune(older_than=0, archive=wrong)
    with open_archive(path), pytest.raises(LeaseQueueError, match="in use by another run"):
        prune(older_than=0, archive=path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(LeaseQueueError, match="belongs to another user"):
        prune(older_than=0, archive=path)
    assert left() == ids


# Before the delete


def test_it_is_on_the_disk_before_the_commit(connection, path, monkeypatch):
    ids = old_jobs(connection, 4)
    events = []
    fsync = os.fsync

    def synced(number):
        if os.fstat(number).st_ino == path.stat().st_ino:
            events.append(("synced", len(path.read_bytes())))
        fsync(number)

    def note(execute, sql, params, many, context):
        if "DELETE" in sql or (sql == "COMMIT" and len(events) % 5):
            events.append((sql.partition(" WHERE")[0].rpartition("*/ ")[2], len(path.read_bytes())))
        return execute(sql, params, many, context)

    monkeypatch.setattr(os, "fsync", synced)
    with connection.execute_wrapper(note):
        prune(older_than=0, batch=2, archive=path)
    assert len(events) == 10
    for batch in (events[:5], events[5:]):
        assert batch[0][0] == "synced"
        assert len({size for _what, size in batch}) == 1
        tables = [what.split()[-1] for what, _size in batch]
        assert batch[-1][0] == "COMMIT"
        deletes = [sql for sql, _size in batch[1:4]]
        assert ["attempt" in deletes[0], "effect" in deletes[1]] == [True, True], tables
    assert ids_in(path) == ids


def test_a_disk_that_is_full(connection, path, monkeypatch):
    first = old_jobs(connection, 2)
    prune(older_than=0, archive=path)
    ids = old_jobs(connection, 4)
    before = snapshot(connection)

    def full(number):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        # The name of the file is on the disk already.
        patched.setattr(archive_module, "_sync_folder", lambda path: None)
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            prune(older_than=0, archive=path)
    assert snapshot(connection) == before
    assert ids_in(path) == first
    prune(older_than=0, archive=path)
    assert ids_in(path) == first + ids


def test_a_delete_that_fails_leaves_no_record(connection, path):
    ids = old_jobs(connection, 3)

    def fail(execute, sql, params, many, context):
        if "DELETE" in sql and "effect" in sql:
            raise DatabaseError("refused")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(DatabaseError):
        prune(older_than=0, archive=path)
    assert (left(), ids_in(path)) == (ids, [])


@pytest.mark.parametrize("applied", [True, False])
def test_a_commit_whose_answer_is_lost(connection, path, applied, db_kind):
    """Counted once; in the archive at least once."""
    if db_kind == "sqlite":
        pytest.skip("has no connection to lose")
    ids = old_jobs(connection, 5, attempts=2)
    code = {"postgres": "server closed the connection"}.get(db_kind, 2013)
    broken, deleted = [], []

    def lose(execute, sql, params, many, context):
        deleted.append("DELETE" in sql)
        if sql != "COMMIT" or broken or not any(deleted):
            return execute(sql, params, many, context)
        broken.append(sql)
        execute("COMMIT" if applied else "ROLLBACK", params, many, context)
        raise OperationalError(code, "lost")

    with connection.execute_wrapper(lose):
        pruned = prune(older_than=0, batch=3, archive=path)
    assert broken
    assert (pruned.jobs, pruned.attempts, left()) == (5, 10, [])
    assert sorted(set(ids_in(path))) == ids
    assert len(ids_in(path)) == (5 if applied else 8)


KILLED = """
    import os, signal, sys
    import django
    django.setup()
    from django.conf import settings
    from django.db import connection
    from django_leasequeue import prune

    connection.settings_dict["NAME"] = sys.argv[1]
    countdown = int(sys.argv[3])

    deleted = False

    def note(execute, sql, params, many, context):
        global countdown, deleted
        if "DELETE" in sql or (sql == "COMMIT" and deleted):
            countdown -= 1
            deleted = sql != "COMMIT"
            if not countdown:
                os.kill(os.getpid(), signal.SIGKILL)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        prune(older_than=0, batch=3, archive=sys.argv[2])
"""


@pytest.mark.parametrize("countdown", [1, 4, 7, 12])
def test_killed_at_any_moment_nothing_is_lost(connection, path, countdown):
    """What is in the archive and what is in the table are together all that there was."""
    ids = old_jobs(connection, 10)
    name = str(connection.settings_dict["NAME"])
    command = [sys.executable, "-c", textwrap.dedent(KILLED), name, str(path), str(countdown)]
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "testproject.settings",
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "testproject")]),
    }
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == -9, ended.stderr
    committed = (countdown - 1) // 4
    assert len(left()) == 10 - 3 * committed
    assert sorted({*ids_in(path), *left()}) == ids
    assert prune(older_than=0, archive=path).jobs == 10 - 3 * committed
    assert sorted(set(ids_in(path))) == ids
    assert {len(record["attempts"]) for record in archived(path)} == {1}


# Memory


def test_memory_is_bounded(connection, path):
    """I3: ten times the jobs take no more memory; no collector loads rows."""

    def peak(count):
        old_jobs(connection, 1)
        fill(connection, count)
        tracemalloc.start()
        assert prune(older_than=0, batch=50, pause=0, archive=path).jobs == count
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # what is loaded once
    assert peak(1500) < 1.3 * peak(150)


def fill(connection, count):
    columns = "queue_name, job_type, payload, status, created_at, finished_at, claims"
    (first,) = left()
    for start in range(1, count, 500):
        ones = " UNION ALL ".join(["SELECT 1 AS one"] * min(500, count - start))
        run(
            connection,
            f"INSERT INTO leasequeue_job ({columns}) SELECT {columns} FROM leasequeue_job "
            f"CROSS JOIN ({ones}) many WHERE id = {first}",
        )


def test_what_is_in_memory_at_a_time(connection, path):
    """Few jobs of a batch, for payloads may be large."""
    old_jobs(connection, 60)
    sizes = []

    def note(execute, sql, params, many, context):
        if "leasequeue:archive" in sql and "FROM leasequeue_job" in sql:
            sizes.append(len(params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        assert prune(older_than=0, archive=path).jobs == 60
    assert max(sizes) == 25
    assert pruning.MOST_ATTEMPTS == 10_000
