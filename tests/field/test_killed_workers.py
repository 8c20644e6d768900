"""A job that kills its own process: dead after its budget, whoever restarts the workers."""

from __future__ import annotations

import signal

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from tests.process import rows

OPTIONS = ("--lease", "1.2", "--drain", "--solo")


def test_three_workers_are_lost_and_no_fourth(queue_db, worker_process):
    """B5: a supervisor's loop; the other jobs go on, and the rows tell of three lost attempts."""
    killer = enqueue("proc.kill", max_attempts=3).id
    others = [enqueue("proc.note").id for _ in range(3)]
    workers = []
    while not workers or workers[-1].wait() == -signal.SIGKILL:
        workers.append(worker_process(*OPTIONS))
        assert len(workers) <= 4
    assert [worker.wait() for worker in workers] == [-signal.SIGKILL] * 3 + [0]

    dead = rows.job(killer)
    assert (dead.status, dead.attempts, dead.crashes, dead.claims) == ("dead", 3, 3, 3)
    assert dead.last_error == "Lease expired after final attempt"
    attempts = JobAttempt.objects.filter(job_id=killer).order_by("number")
    assert [attempt.outcome for attempt in attempts] == ["expired"] * 3
    lost = [worker.named("worker_started")[0]["worker"] for worker in workers[:3]]
    assert [attempt.worker for attempt in attempts] == lost
    # A line that is still to be written goes with its process; the last one ends in order.
    told = [len(worker.named("leases_recovered")) for worker in workers]
    assert told[0] == 0
    assert max(told) == told[3] == 1
    assert workers[-1].named("job_dead", job_id=killer, attempt=3)
    assert {rows.job(job_id).status for job_id in others} == {"done"}
