"""Two workers of one name on one host: only the token tells whose a job is."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from reports.models import GeneratedReport
from tests.faults.frozen import freeze, thaw
from tests.process import rows
from tests.waiting import wait_until

OPTIONS = ("--lease", "1.5", "--name", "pod")


@pytest.mark.parametrize("end", ["completes", "fails", "is told to abort"])
def test_a_predecessor_that_wakes_up_changes_nothing(queue_db, worker_process, gate, end):
    """B6: it stood still, its successor of the same name runs the job, then it goes on."""
    first_run = "raise" if end == "fails" else "complete"
    job_id = enqueue("proc.wait", {"gate": str(gate("a")), "first_run": first_run}).id
    first = worker_process(*OPTIONS)
    gate("a").wait("started-1")
    freeze(first, job_id)
    second = worker_process(*OPTIONS)
    gate("a").wait("started-2")
    if end == "is told to abort":
        first.signal(signal.SIGTERM)  # while it stands still: all comes at once when it wakes
    thaw(first)

    # Several beats of both renewers pass, and the successor's lease is the one that grows.
    seen = rows.job(job_id)
    for _ in range(2):
        deadline = rows.job(job_id).lease_until
        wait_until(lambda before=deadline: rows.job(job_id).lease_until > before)
    if end == "is told to abort":
        first.signal(signal.SIGTERM)
        first.signal(signal.SIGTERM)
    held = rows.job(job_id)
    assert (held.status, held.attempts, held.crashes) == ("reserved", 2, 1)
    assert (held.lease_token, held.leased_by) == (seen.lease_token, seen.leased_by)
    assert rows.outcomes(job_id) == ["expired"]

    gate("a").say("go")
    first.wait_event("job_lease_lost", job_id=job_id, attempt=1)
    second.wait_event("job_completed", job_id=job_id, attempt=2)
    for worker in (first, second):
        if worker is second or end != "is told to abort":
            worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert (rows.job(job_id).status, rows.job(job_id).attempts) == ("done", 2)
    assert rows.outcomes(job_id) == ["expired", "completed"]
    assert [report.result_json for report in GeneratedReport.objects.all()] == [{"claim": 2}]
