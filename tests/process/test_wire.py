"""A wire that breaks at one statement of one connection: no job is lost, no fenced effect doubled.

The worker mends by itself whatever it was saying, and goes on with the child that it has, or with
another.
"""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from reports.models import GeneratedReport
from tests.faults.proxy import Strike
from tests.process import rows
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

LEASE = 3
COMMIT = b"COMMIT"
KEPT = {"PROCESS_TEST_KEEP_CONNECTIONS": "1"}
#: Where the wire breaks: the job whose life comes by there, and the statements.
STEPS = {
    "claim": ("outages.effect", {}, b"leasequeue:claim", COMMIT),
    "fence": ("outages.effect", {}, b"", b"leasequeue:hold"),
    "complete": ("outages.effect", {}, b"leasequeue:hold", COMMIT),
    "effect": ("outages.charge", {}, b"leasequeue:effect", COMMIT),
    "renew": ("outages.slow", {"seconds": 2}, b"leasequeue:renew", COMMIT),
    "settle": ("proc.note", {}, b"leasequeue:settle", COMMIT),
}
EFFECTS = ("outages.effect", "outages.charge")
#: What happens to the statement, and who is told.
WAYS = {
    "cut before": {},
    "cut after": {"applied": True},
    "silent before": {"silent": True},
    "silent after": {"silent": True, "applied": True},
}


def effects(job_id):
    found = GeneratedReport.objects.filter(tenant_id=f"job-{job_id}")
    return [result["claim"] for result in found.values_list("result_json", flat=True)]


def completed(job_id):
    found = JobAttempt.objects.filter(job_id=job_id, outcome="completed")
    return list(found.values_list("number", flat=True))


@pytest.mark.parametrize("way", WAYS)
def test_a_statement_of_each_kind(queue_db, worker_process, proxy, by_proxy, way):
    worker = worker_process("--processes", "1", "--lease", str(LEASE), env=by_proxy)
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)
    for step, (kind, payload, after, at) in STEPS.items():
        strike = proxy.strike(Strike(at, after, **WAYS[way]))
        job_id = enqueue(kind, payload, max_attempts=100).id
        assert strike.fired.wait(20), step
        wait_until(
            lambda job_id=job_id: rows.job(job_id).status == "done",
            timeout=30,
            message=f"{step}: {rows.job(job_id).status}, {rows.outcomes(job_id)}\n{worker.log()}",
        )
        (number,) = completed(job_id)
        if kind == "outages.effect":
            assert effects(job_id) == [number], step
        elif kind == "outages.charge":
            assert len(effects(job_id)) == 1, step
        if "expired" in rows.outcomes(job_id):
            assert worker.named("job_lease_lost", job_id=job_id), step
        # Its one child is there for the next one.
        worker.wait_event("job_completed", job_id=enqueue("proc.note").id, timeout=20)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []


def test_connections_that_a_firewall_forgets(queue_db, worker_process, proxy, by_proxy):
    """Idle ones of control, its renewer and the child go silent; new ones would work."""
    worker = worker_process("--processes", "1", "--lease", str(LEASE), env={**by_proxy, **KEPT})
    completed = worker.wait_event("job_completed", job_id=enqueue("proc.report").id)
    # A connection that was in use within the last second is trusted without a question.
    used = datetime.fromisoformat(completed["time"])
    wait_until(lambda: datetime.now(UTC) > used + timedelta(seconds=1.2))
    proxy.forget()
    job_id = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=job_id, attempt=1, timeout=30)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []


def test_a_host_that_vanishes_in_the_middle_of_a_claim(queue_db, worker_process, proxy, by_proxy):
    """The server hears nothing of it: what it has locked for the lost session is free soon."""
    strike = proxy.strike(Strike(COMMIT, b"leasequeue:claim", vanished=True))
    lost = worker_process("--lease", str(LEASE), env=by_proxy)
    lost.wait_event("worker_started")
    job_id = enqueue("proc.report").id
    assert strike.fired.wait(20)
    lost.kill()
    worker = worker_process("--lease", str(LEASE))
    worker.wait_event("job_completed", job_id=job_id, timeout=30)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
