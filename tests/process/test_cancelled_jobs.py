"""Cancelling a job that a worker has: it ends within about two seconds, or never starts."""

from __future__ import annotations

import signal
import time

import pytest
from django.db import transaction

from django_leasequeue import cancel, enqueue
from django_leasequeue.models import Job
from tests.process import rows
from tests.waiting import wait_until

#: The worker reads again what it holds every two seconds; the rest is a busy machine's.
SECONDS = 2 + 2
on_servers = pytest.mark.only_on("mariadb", "mysql", "postgres")

CREWS = {
    "child": ([], "hang.sleep", "JobCancelled"),
    "thread": (["--threads", "2"], "proc.wait", None),
    "coroutine": ([], "co.sleep", "CancelledError"),
    "coroutine in a thread": (["--threads", "2"], "co.sleep", "CancelledError"),
    "deaf": (["--kill-after", "0.3"], "hang.passes_over_all", None),
    "solo": (["--solo"], "hang.sleep", "JobCancelled"),
}


@pytest.mark.parametrize(
    "crew",
    [pytest.param(name, marks=() if name == "solo" else on_servers) for name in CREWS],
)
def test_a_running_job_ends_soon(queue_db, worker_process, gate, crew):
    """F3's like: JobCancelled, or a coroutine's CancelledError, is what its `finally` sees."""
    options, job_type, seen = CREWS[crew]
    job_id = enqueue(job_type, {"gate": str(gate("a"))}).id
    worker = worker_process(*options)
    gate("a").wait("started" if job_type == "proc.wait" else f"started-{job_id}")
    began = time.monotonic()
    assert cancel([job_id]) == [job_id]
    ended = worker.wait_event("job_cancelled", job_id=job_id)
    assert time.monotonic() - began < SECONDS
    assert ended["attempt"] == 1
    if seen is not None:
        assert gate("a").said(f"{seen}-{job_id}")
    assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("cancelled", ["cancelled"])
    after = enqueue("hang.pid").id
    worker.wait_event("job_completed", job_id=after)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert not worker.named("job_lease_lost")
    assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("cancelled", ["cancelled"])


@pytest.mark.parametrize("crew", [pytest.param("child", marks=on_servers), "solo"])
def test_a_running_job_that_is_deleted_is_lost(queue_db, worker_process, gate, crew):
    """By plain SQL, say: no page of the admin deletes jobs. The worker goes on with the next."""
    options, job_type, _seen = CREWS[crew]
    job_id = enqueue(job_type, {"gate": str(gate("a"))}).id
    worker = worker_process(*options)
    gate("a").wait(f"started-{job_id}")
    assert Job.objects.filter(pk=job_id).delete()[0] == 1
    worker.wait_event("job_lease_lost", job_id=job_id)
    assert gate("a").said(f"LeaseLost-{job_id}")
    after = enqueue("hang.pid").id
    worker.wait_event("job_completed", job_id=after)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert not worker.named("worker_fatal")
    assert not Job.objects.filter(pk=job_id).exists() and rows.outcomes(job_id) == []


@on_servers
def test_a_job_that_was_claimed_ahead_never_starts(queue_db, worker_process, gate):
    """It waits in a child behind another job while it is cancelled."""
    quick = [enqueue("hang.pid").id for _ in range(20)]
    worker = worker_process("--poll-min", "0.3", "--poll-max", "0.3")
    for job_id in quick:  # from them the worker learns that jobs are short
        worker.wait_event("job_completed", job_id=job_id)
    payload = {"gate": str(gate("a"))}
    with transaction.atomic():
        blocking = enqueue("proc.wait", payload).id
        waiting = [enqueue("hang.sleep", {**payload, "seconds": 0}).id for _ in range(3)]
    wait_until(lambda: {rows.job(job_id).status for job_id in waiting} == {"reserved"})
    assert cancel(waiting) == waiting
    gate("a").wait("started")
    wait_until(lambda: ended_unstarted(worker, waiting), timeout=SECONDS)
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=blocking)
    after = enqueue("hang.pid").id
    worker.wait_event("job_completed", job_id=after)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    for job_id in waiting:
        assert not gate("a").said(f"started-{job_id}")
        assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("cancelled", ["cancelled"])


def ended_unstarted(worker, ids):
    ends = [*worker.named("claim_release_lost"), *worker.named("job_cancelled")]
    return {event["job_id"] for event in ends} >= set(ids)
