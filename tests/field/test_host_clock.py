"""A worker whose host's clock is wrong by ten minutes: every time is the database's."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from tests.faults.faketime import faked
from tests.process import rows
from tests.waiting import wait_until

# SQLite has no clock of its own: the host's is the queue's there, and the documentation says so.
pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

OFFSETS = {"+10m": timedelta(minutes=10), "-10m": timedelta(minutes=-10)}
SECOND = timedelta(seconds=1)
LEASE = 4.0


@pytest.fixture(params=OFFSETS)
def wrong(request) -> str:
    """How wrong the host's clock is."""
    return request.param


def near(moment: datetime, other: datetime, within: timedelta = 0.3 * SECOND) -> bool:
    return abs(moment - other) <= within


def test_due_times_leases_and_backoff(queue_db, worker_process, gate, wrong):
    """B21: a job is claimed when it is due, held for its lease, and comes back after its delay."""
    later = enqueue("proc.note", delay=1.5).id
    failing = enqueue("proc.exit", {"name": "SystemExit"}).id
    waiting = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--lease", str(LEASE), env=faked(wrong))
    started = worker.wait_event("worker_started")
    said = datetime.fromisoformat(started["time"])
    assert near(said, datetime.now(UTC) + OFFSETS[wrong], 20 * SECOND)  # it does work

    worker.wait_event("job_failed", job_id=failing)
    gate("a").wait("started")
    first = rows.job(waiting)
    wait_until(lambda: rows.job(waiting).lease_until > first.lease_until)
    # From the claim, or from a renewal that came before it was read here: each writes its time.
    assert near(first.updated_at + timedelta(seconds=LEASE), first.lease_until)
    assert near(first.claimed_at, first.updated_at, 20 * SECOND)  # not ten minutes
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=waiting, attempt=1)
    worker.wait_event("job_completed", job_id=later, attempt=1)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0

    done, failed = rows.job(later), rows.job(failing)
    assert timedelta(0) <= done.claimed_at - done.available_at <= 10 * SECOND
    attempt = JobAttempt.objects.get(job_id=failing)
    assert 2 * SECOND < failed.available_at - attempt.finished_at <= 5.5 * SECOND
    for stamp in (failed.updated_at, done.finished_at, attempt.started_at, attempt.finished_at):
        assert near(stamp, datetime.now(UTC), 60 * SECOND)
    assert not worker.named("leases_recovered")


def test_recovery(queue_db, worker_process, gate, wrong):
    """B21: a lost lease is taken back when it has run out, a live one never before."""
    held = enqueue("proc.wait", {"gate": str(gate("held"))}).id
    holder = worker_process("--lease", str(LEASE), "--name", "right")
    gate("held").wait("started")
    lost = enqueue("proc.wait", {"gate": str(gate("lost"))}).id
    victim = worker_process("--lease", str(LEASE))
    gate("lost").wait("started")
    victim.kill()
    deadline = rows.job(lost).lease_until
    gate("lost").say("go")

    worker = worker_process("--lease", str(LEASE), "--name", "wrong", env=faked(wrong))
    worker.wait_event("job_completed", job_id=lost, attempt=2)
    expired = JobAttempt.objects.get(job_id=lost, number=1)
    assert timedelta(0) <= expired.finished_at - deadline <= 10 * SECOND
    # Two renewals of the live lease later it still is nobody else's.
    for _ in range(2):
        before = rows.job(held).lease_until
        wait_until(lambda until=before: rows.job(held).lease_until > until)
    gate("held").say("go")
    holder.wait_event("job_completed", job_id=held, attempt=1)
    for process in (holder, worker):
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert rows.outcomes(held) == ["completed"]
    assert rows.outcomes(lost) == ["expired", "completed"]


def test_a_handler_sees_the_wrong_clock_but_loses_nothing_by_it(
    queue_db, worker_process, manage, wrong
):
    """B21: producers too: delays count by the database's clock, moments are moments."""
    answer = manage("enqueue_report", "acme", "2042-01", env=faked(wrong))
    assert answer.returncode == 0, answer.stderr
    stored = rows.job(int(answer.stdout))
    for stamp in (stored.created_at, stored.available_at, stored.updated_at):
        assert near(stamp, datetime.now(UTC), 30 * SECOND)
