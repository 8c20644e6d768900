"""A job that kills its own process: dead after its budget, whoever restarts the workers."""

from __future__ import annotations

import signal

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from tests.process import rows

OPTIONS = ("--lease", "1.2", "--drain", "--solo")


def test_three_workers_are_lost_and_no_fourth(queue_db, worker_process, gate):
    """B5: a supervisor's loop; the other jobs go on, and the log tells of three lost attempts."""
    told = gate("told")
    killer = enqueue("proc.kill_when_told", {"gate": str(told)}, max_attempts=3).id
    others = [enqueue("proc.note").id for _ in range(3)]
    workers = []
    while not workers or workers[-1].wait() == -signal.SIGKILL:
        workers.append(worker_process(*OPTIONS))
        assert len(workers) <= 4
        if len(workers) > 1:  # a line that is still to be written would go with its process
            workers[-1].wait_event("leases_recovered")
        told.say(f"go-{len(workers)}")
    assert [worker.wait() for worker in workers] == [-signal.SIGKILL] * 3 + [0]

    dead = rows.job(killer)
    assert (dead.status, dead.attempts, dead.crashes, dead.claims) == ("dead", 3, 3, 3)
    assert dead.last_error == "Lease expired after final attempt"
    attempts = JobAttempt.objects.filter(job_id=killer).order_by("number")
    assert [attempt.outcome for attempt in attempts] == ["expired"] * 3
    lost = [worker.named("worker_started")[0]["worker"] for worker in workers[:3]]
    assert [attempt.worker for attempt in attempts] == lost
    assert sum(len(worker.named("leases_recovered")) for worker in workers) == 3
    assert workers[-1].named("job_dead", job_id=killer, attempt=3)
    assert {rows.job(job_id).status for job_id in others} == {"done"}
