"""Burials: the `failed` hook runs in a child, under the job's limit, at least once per death."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from django_leasequeue import enqueue
from tests.faults.tree import children_of, process, tree_of, wait_gone
from tests.process import rows
from tests.waiting import wait_until

LEASE = ("--lease", "2")

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.fixture
def dying(queue_db, worker_process, gate):
    """Start a worker whose job dies; return it and the job's id once its hook waits."""

    def start(*options, **job):
        job_id = enqueue("res.dies", {"gate": str(gate("a"))}, max_attempts=1, **job).id
        worker = worker_process(*LEASE, *options)
        wait_hooks(gate, 1)
        return worker, job_id

    return start


def hooks(gate):
    """Return the pids of the processes in which the hook began."""
    names = (path.name for path in Path(str(gate("a"))).iterdir())
    return {int(name.split("-")[1]) for name in names if name.removeprefix("hook-").isdigit()}


def wait_hooks(gate, count):
    wait_until(lambda: len(hooks(gate)) >= count, timeout=20, message=f"not {count} hooks")
    return hooks(gate)


def bring_on(queue_db, job_id):
    """Let the next try's time come now."""
    with queue_db.cursor() as cursor:
        cursor.execute(
            "UPDATE leasequeue_job SET lease_until = '2020-01-01 00:00:00'"
            " WHERE id = %s AND status = 'dead' AND lease_token IS NULL",
            [job_id],
        )
        assert cursor.rowcount == 1


def test_control_goes_on_while_a_hook_runs(dying, gate):
    """Its lease is renewed meanwhile, and nobody runs it a second time."""
    worker, job_id = dying("--processes", "2")
    (pid,) = hooks(gate)
    assert pid in {child.pid for child in children_of(worker, 2)}
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)
    until = rows.job(job_id).lease_until
    wait_until(lambda: rows.job(job_id).lease_until > until)
    gate("a").say("go")
    wait_until(lambda: rows.job(job_id).lease_until is None)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert gate("a").said("hook-ended")
    assert (rows.job(job_id).status, rows.job(job_id).bury_tries) == ("dead", 1)
    assert hooks(gate) == {pid}
    assert not worker.named("burial_failed")


def test_a_hook_has_the_jobs_time_limit(dying, queue_db):
    worker, job_id = dying("--kill-after", "0.2", timeout=0.5)
    assert worker.wait_event("burial_failed", job_id=job_id)["error"] == "JobTimeout"
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert (rows.job(job_id).status, rows.job(job_id).bury_tries) == ("dead", 1)


def test_a_hook_that_kills_its_child_has_three_tries(dying, gate, queue_db):
    worker, job_id = dying()
    killed = set()
    for tries in (1, 2, 3):
        (pid,) = wait_hooks(gate, tries) - killed
        assert rows.job(job_id).bury_tries == tries
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
        worker.wait_event("burial_failed", count=tries, job_id=job_id)
        bring_on(queue_db, job_id)
    # Taken a fourth time, it is closed unheard.
    wait_until(lambda: rows.job(job_id).lease_until is None)
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert hooks(gate) == killed
    assert (rows.job(job_id).status, rows.job(job_id).bury_tries) == ("dead", 3)
    assert rows.outcomes(job_id) == ["failed"]


def test_a_hook_whose_worker_is_killed_is_run_by_another(dying, worker_process, gate):
    worker, job_id = dying()
    (first,) = hooks(gate)
    processes = tree_of(worker.pid)
    assert process(first) in processes
    worker.signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    wait_gone(processes)
    other = worker_process(*LEASE)
    (second,) = wait_hooks(gate, 2) - {first}
    gate("a").say("go")
    wait_until(lambda: rows.job(job_id).lease_until is None)
    other.signal(signal.SIGTERM)
    assert other.wait() == 0
    assert second != first and gate("a").said("hook-ended")
    assert (rows.job(job_id).status, rows.job(job_id).bury_tries) == ("dead", 2)
    assert rows.outcomes(job_id) == ["failed"]


def test_a_worker_at_its_limit_of_jobs_lets_the_hook_end(dying, gate):
    worker, job_id = dying("--processes", "2", "--max-jobs", "2")
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)
    gate("a").say("go")
    assert worker.wait() == 0
    assert gate("a").said("hook-ended")
    assert (rows.job(job_id).lease_until, rows.job(job_id).bury_tries) == (None, 1)
