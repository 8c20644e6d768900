"""Control, a child or both stand still for three leases: the queue stays exact, and works on."""

from __future__ import annotations

import signal
import time

import pytest

from django_leasequeue import enqueue
from reports.models import GeneratedReport
from tests.faults.tree import children_of, go_on, process, stop, wait_gone
from tests.process import rows
from tests.process.rows import is_locked
from tests.waiting import wait_until

SECONDS = 1.5
LEASE = ("--lease", str(SECONDS))


def stand_still(processes, job_id):
    """Stop the processes while none of them holds the job's row, which would stop the others."""

    def stopped_without_lock():
        stop(processes)
        if not is_locked(job_id):
            return True
        go_on(processes)
        return False

    wait_until(stopped_without_lock)
    return time.monotonic()


def end(*workers):
    for worker in workers:
        worker.signal(signal.SIGTERM)
    for worker in workers:
        assert worker.wait() == 0
        assert worker.lines == []


def wait_leases(since):
    wait_until(lambda: time.monotonic() >= since + 3 * SECONDS, timeout=4 * SECONDS)


@pytest.mark.parametrize("frozen", ["control", "control and child"])
def test_a_worker_without_control_loses_to_its_rival_and_works_on(
    queue_db, worker_process, gate, frozen
):
    """B8: the child alone ends its handler in time; awake, it changes nothing."""
    job_id = enqueue("outages.watched", {"gate": str(gate("a"))}).id
    first = worker_process(*LEASE, "--name", "first")
    gate("a").wait("started-1")
    control = process(first.pid)
    frozen_ones = [control, *(children_of(first) if frozen != "control" else ())]
    rival = worker_process(*LEASE, "--name", "rival")
    rival.wait_event("worker_started")
    since = stand_still(frozen_ones, job_id)
    gate("a").wait("started-2")
    assert gate("a").said("lost-1") is (frozen == "control")
    wait_leases(since)
    gate("a").say("go")
    rival.wait_event("job_completed", job_id=job_id, attempt=2)
    stood = vars(rows.job(job_id))
    end(rival)

    go_on(frozen_ones)
    first.wait_event("job_lease_lost", job_id=job_id, attempt=1)
    another = enqueue("proc.report").id
    first.wait_event("job_completed", job_id=another, attempt=1)
    end(first)
    assert {**vars(rows.job(job_id)), "_state": None} == {**stood, "_state": None}
    assert rows.outcomes(job_id) == ["expired", "completed"]
    effects = GeneratedReport.objects.filter(tenant_id=f"job-{job_id}")
    assert [effect.result_json for effect in effects] == [{"claim": 2}]


@pytest.mark.parametrize("says", ["go before it wakes", "go when it is awake"])
def test_a_child_that_stood_still_keeps_its_lease(queue_db, worker_process, gate, says):
    """Control renews for it: it goes on where it stopped, and completes its only attempt."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process(*LEASE)
    gate("a").wait("started-1")
    (child,) = children_of(worker)
    rival = worker_process(*LEASE, "--name", "rival")
    rival.wait_event("worker_started")
    since = stand_still([child], job_id)
    wait_leases(since)
    if says == "go before it wakes":
        gate("a").say("go")
    go_on([child])
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    end(worker, rival)
    assert not rival.named("leases_recovered")
    assert rows.outcomes(job_id) == ["completed"]
    assert GeneratedReport.objects.count() == 1


def test_a_child_that_stands_still_is_killed_at_its_limit(queue_db, worker_process, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}, timeout=1.5, max_attempts=1).id
    worker = worker_process(*LEASE)
    gate("a").wait("started-1")
    (child,) = children_of(worker)
    stand_still([child], job_id)
    worker.wait_event("job_timed_out", job_id=job_id, attempt=1, timeout=10)
    wait_gone([child])
    another = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=another)
    end(worker)
    assert rows.outcomes(job_id) == ["timed_out"]
    assert rows.job(job_id).status == "dead"


def test_an_idle_child_that_stands_still_swallows_no_job(queue_db, worker_process):
    """What it does not start is given back in time, uncounted, and another child runs it."""
    first = enqueue("proc.report").id
    worker = worker_process(*LEASE)
    worker.wait_event("job_completed", job_id=first)
    (child,) = children_of(worker)
    stop([child])
    job_ids = [enqueue("proc.report", max_attempts=2).id for _ in range(3)]
    for job_id in job_ids:
        worker.wait_event("job_completed", job_id=job_id, timeout=20)
    wait_gone([child])
    end(worker)
    assert not worker.named("leases_recovered")
    assert [rows.outcomes(job_id) for job_id in job_ids] == [["completed"]] * 3
    assert {rows.job(job_id).attempts for job_id in job_ids} == {1}
