"""`runworker` as a command: its options, exit codes, ports, its two names and log formats."""

from __future__ import annotations

import os
import re
import signal
import socket

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.faults.tree import children_of, tree_of
from tests.process.processes import listening_ports


def claimed(worker):
    return [(event["queue"], event["job_id"]) for event in worker.named("job_claimed")]


def test_drain_ends_an_idle_worker_with_0(queue_db, worker_process):
    worker = worker_process("--drain")
    assert worker.wait() == 0
    assert [event["event"] for event in worker.events] == ["worker_started", "worker_stopped"]
    assert (worker.output, worker.lines) == ("", [])


def test_drain_leaves_what_is_due_later_than_its_wait(queue_db, worker_process):
    later = enqueue("proc.note", delay=3600).id
    fails = enqueue("unsupported.fixture").id
    retried = enqueue("proc.fail", max_attempts=2).id
    now = enqueue("proc.note").id
    worker = worker_process("--drain", "--drain-wait", "5")
    assert worker.wait() == 0
    statuses = dict(Job.objects.values_list("id", "status"))
    assert statuses == {later: "ready", fails: "dead", retried: "dead", now: "done"}


def test_max_jobs_ends_after_so_many(queue_db, worker_process):
    ids = [enqueue("proc.note").id for _ in range(3)]
    worker = worker_process("--max-jobs", "2")
    assert worker.wait() == 0
    assert claimed(worker) == [("default", job_id) for job_id in ids[:2]]
    assert list(Job.objects.filter(status="ready").values_list("id", flat=True)) == ids[2:]


def test_queues_are_strict_in_the_order_given(queue_db, worker_process):
    jobs = [(queue, enqueue("proc.note", queue=queue).id) for queue in "abcabc"]
    worker = worker_process("--queues", "b,a", "--drain")
    assert worker.wait() == 0
    assert claimed(worker) == [job for name in "ba" for job in jobs if job[0] == name]
    assert {*Job.objects.filter(queue_name="c").values_list("status", flat=True)} == {"ready"}


def test_the_operators_command_is_the_same_worker(queue_db, manage):
    job_id = enqueue("proc.note", {"text": "two\nlines"}).id
    ended = manage("leasequeue", "worker", "--drain", "--log-format", "text", "--name", "mine")
    assert (ended.returncode, ended.stdout) == (0, "")
    time = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"
    fields = rf"job_id={job_id} job_type=proc\.note queue=default attempt=1"
    patterns = [
        rf"{time} worker_started pid=\d+ worker=mine:\S+",
        rf"{time} job_claimed pid=\d+ worker=mine:\S+ {fields}",
        rf"{time} job_completed pid=\d+ worker=mine:\S+ {fields} elapsed_ms=\d+",
        rf"{time} worker_stopped pid=\d+ worker=mine:\S+",
    ]
    lines = ended.stderr.splitlines()
    assert len(lines) == len(patterns)
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.fullmatch(pattern, line)


def test_the_exit_code_of_a_fatal_error_is_1(queue_db, manage):
    job_id = enqueue("proc.note").id
    with queue_db.cursor() as cursor:
        cursor.execute("ALTER TABLE leasequeue_job RENAME TO leasequeue_job_away")
    try:
        ended = manage("runworker", "--drain")
    finally:
        with queue_db.cursor() as cursor:
            cursor.execute("ALTER TABLE leasequeue_job_away RENAME TO leasequeue_job")
    assert ended.returncode == 1
    assert '"event":"worker_fatal"' in ended.stderr.splitlines()[-1]
    assert '"error":"' in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert Job.objects.get(pk=job_id).status == "ready"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lease", "0.2"), "A lease of 0.2 s is below"),
        (("--queues", "a,,b"), "--queues: queues are names"),
        (("--max-jobs", "0"), "--max-jobs must be at least 1"),
        (("--log-format", "xml"), "argument --log-format: invalid choice: 'xml'"),
    ],
)
def test_a_wrong_option_is_explained(queue_db, manage, options, message):
    ended = manage("runworker", *options)
    assert ended.returncode not in (0, -11)
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "worker_started" not in ended.stderr


def test_none_of_its_processes_listens_on_a_port(queue_db, worker_process):
    """S1: no inbound rule is needed. With --metrics-port there is one: test_monitoring.py."""
    worker = worker_process("--processes", "2")
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)
    children = children_of(worker, 2)
    processes = tree_of(worker.pid)
    assert {*children} < {*processes}
    assert listening_ports(one.pid for one in processes) == set()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_port_that_listens_is_seen():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1] in listening_ports([os.getpid()])
