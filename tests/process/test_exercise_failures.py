"""Seed S1's exercise: its failure fixtures, enqueued by plain SQL on each database."""

from __future__ import annotations

import signal
from datetime import timedelta

from django_leasequeue import reschedule
from django_leasequeue.models import JobAttempt
from reports.models import GeneratedReport
from tests.process import rows

FIXTURES = {"WORKER_ENABLE_TEST_FIXTURES": "1"}


def test_a_killed_worker_costs_one_lease(queue_db, worker_process):
    arguments = "'tenant_id', 'fixture-pause', 'report_month', '2042-03', 'test_pause', TRUE"
    job_id = rows.insert_fixture(queue_db, "report.generate", arguments, max_attempts=3)
    options = ("--queues", "reports", "--lease", "2")
    first = worker_process(*options, env=FIXTURES)
    first.wait_event("job_claimed", job_id=job_id, attempt=1)
    first.signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    second = worker_process(*options, "--drain")
    assert second.wait() == 0
    assert second.wait_event("leases_recovered")["count"] == 1
    second.wait_event("job_completed", job_id=job_id, attempt=2)
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, stored.crashes) == ("done", 2, 1)
    names = [worker.wait_event("worker_started")["worker"] for worker in (first, second)]
    attempts = JobAttempt.objects.order_by("number").values_list("number", "outcome", "worker")
    assert list(attempts) == [(1, "expired", names[0]), (2, "completed", names[1])]
    assert GeneratedReport.objects.get().idempotency_key == stored.idempotency_key


def test_an_unsupported_type_is_dead_after_one_attempt(queue_db, worker_process):
    arguments = "'tenant_id', 'fixture-unsupported', 'report_month', '2042-04'"
    ids = [
        rows.insert_fixture(queue_db, "unsupported.fixture", arguments, max_attempts=attempts)
        for attempts in (1, 5)
    ]
    worker = worker_process("--queues", "reports", "--drain")
    assert worker.wait() == 0
    for job_id in ids:
        stored = rows.job(job_id)
        assert (stored.status, stored.attempts) == ("dead", 1)
        assert stored.last_error == "UnknownJobType: Unsupported job type"
        assert rows.outcomes(job_id) == ["rejected"]
        assert worker.named("job_dead", job_id=job_id, attempt=1)


def test_a_transient_failure_is_done_on_attempt_three(queue_db, worker_process):
    arguments = (
        "'tenant_id', 'fixture-transient', 'report_month', '2042-05', "
        "'test_transient_until_attempt', 2"
    )
    job_id = rows.insert_fixture(queue_db, "report.generate", arguments, max_attempts=4)
    worker = worker_process("--queues", "reports", "--drain", "--drain-wait", "60", env=FIXTURES)

    for attempt, shortest in ((1, 2), (2, 4)):
        worker.wait_event("job_failed", job_id=job_id, attempt=attempt)
        assert shortest <= _delay(job_id) <= shortest + 3.5
        assert rows.outcomes(job_id) == ["failed"] * attempt  # the worker does wait for it
        assert reschedule(job_id) == [job_id]
    assert worker.wait() == 0
    worker.wait_event("job_completed", job_id=job_id, attempt=3)
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, stored.last_error) == ("done", 3, "")
    assert rows.outcomes(job_id) == ["failed", "failed", "completed"]
    assert GeneratedReport.objects.count() == 1


def _delay(job_id: int) -> float:
    """Return the seconds from the last attempt's end to the next one's earliest start.

    In whole milliseconds: one statement may read the clock for each by itself.
    """
    ended = JobAttempt.objects.latest("number").finished_at
    delay: timedelta = rows.job(job_id).available_at - ended
    return round(delay.total_seconds(), 3)
