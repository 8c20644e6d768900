"""A worker that was stopped for longer than its lease: whatever it still does is refused."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from reports.models import GeneratedReport
from tests.faults.frozen import freeze, thaw
from tests.process import rows
from tests.waiting import wait_until

LEASE = ("--lease", "1.5")


@pytest.fixture
def stale(queue_db, worker_process, gate):
    """Run a job in one worker, stop that worker, and let another finish the job meanwhile."""

    def make(job_type="proc.wait", **payload):
        job_id = enqueue(job_type, {"gate": str(gate("first")), **payload}).id
        first = worker_process(*LEASE, "--name", "first")
        gate("first").wait("started")
        freeze(first, job_id)
        gate("first").say("go")
        second = worker_process(*LEASE, "--name", "second")
        second.wait_event("leases_recovered", count=1)
        second.wait_event("job_completed", job_id=job_id, attempt=2)
        second.signal(signal.SIGTERM)
        assert second.wait() == 0
        return first, job_id

    return make


# On SQLite a transaction that has written keeps every other process out of the file, so a stopped
# process stops the queue: nothing there could be stale.
on_servers = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.mark.parametrize(
    ("job_type", "payload"),
    [
        pytest.param("proc.wait", {}, id="complete"),
        pytest.param("proc.wait", {"first_run": "raise"}, id="fail"),
        pytest.param("proc.wait_atomic", {}, id="atomic", marks=on_servers),
    ],
)
def test_a_stale_worker_changes_nothing_and_works_on(stale, gate, job_type, payload):
    first, job_id = stale(job_type, **payload)
    before = vars(rows.job(job_id))
    thaw(first)
    first.wait_event("job_lease_lost", job_id=job_id, attempt=1)

    another = enqueue("proc.note").id
    first.wait_event("job_completed", job_id=another)
    first.signal(signal.SIGTERM)
    assert first.wait() == 0

    after = vars(rows.job(job_id))
    assert {**after, "_state": None} == {**before, "_state": None}
    assert (after["status"], after["attempts"]) == ("done", 2)
    history = JobAttempt.objects.filter(job_id=job_id).order_by("number")
    assert [(attempt.outcome, attempt.worker.split(":")[0]) for attempt in history] == [
        ("expired", "first"),
        ("completed", "second"),
    ]
    assert [report.result_json for report in GeneratedReport.objects.all()] == [{"claim": 2}]


def test_a_claim_that_went_stale_starts_no_handler(queue_db, worker_process, gate):
    """Stopped between the claim and the handler."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    pause = {"WORKER_TEST_POST_CLAIM_PAUSE_MS": "800"}
    first = worker_process(*LEASE, "--name", "first", env=pause)
    wait_until(lambda: rows.job(job_id).status == "reserved")
    freeze(first, job_id)
    gate("a").say("go")
    second = worker_process(*LEASE, "--name", "second", "--drain")
    assert second.wait() == 0
    thaw(first)
    # Which of the two depends on who looks first when both wake, control or the child.
    ends = ("claim_release_lost", "job_lease_lost")
    wait_until(lambda: any(first.named(end, job_id=job_id, attempt=1) for end in ends))
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    assert gate("a").said("started-2")
    assert not gate("a").said("started-1")
    assert rows.outcomes(job_id) == ["expired", "completed"]
    assert [report.result_json for report in GeneratedReport.objects.all()] == [{"claim": 2}]
