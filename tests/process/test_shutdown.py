"""Shutdown: SIGTERM lets a handler finish; grace and a second signal end it; jobs come back."""

from __future__ import annotations

import signal
import time
from datetime import timedelta

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from reports.models import GeneratedReport
from tests.process import rows
from tests.waiting import wait_until

LEASE = 1.5
#: "At once" on a machine that is busy with other things.
SOON = 10


@pytest.fixture
def running(queue_db, worker_process, gate):
    """Start a worker whose handler waits at the gate "a"; return it and the job's id."""

    def start(*options):
        job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
        worker = worker_process("--lease", str(LEASE), *options)
        gate("a").wait("started")
        return worker, job_id

    return start


def test_sigterm_lets_the_handler_finish_under_renewed_leases(running, worker_process, gate):
    worker, job_id = running("--grace", "60")
    second = worker_process("--lease", str(LEASE))
    second.wait_event("worker_started")
    worker.signal(signal.SIGTERM)
    gate("a").wait("stopping")
    held = timedelta(seconds=3 * LEASE)
    wait_until(lambda: rows.job(job_id).lease_until >= rows.job(job_id).claimed_at + held)
    gate("a").say("go")
    assert worker.wait() == 0
    assert [event["event"] for event in worker.events] == [
        "worker_started",
        "job_claimed",
        "job_completed",
        "worker_stopped",
    ]
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    assert not second.named("leases_recovered")
    assert not second.named("job_claimed")
    assert (rows.job(job_id).attempts, rows.outcomes(job_id)) == (1, ["completed"])
    assert GeneratedReport.objects.count() == 1


def test_a_handler_that_outlasts_the_grace_period_is_interrupted_and_released(running):
    worker, job_id = running("--grace", "0.5")
    worker.signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    assert_released(worker, job_id)


def test_a_second_sigterm_aborts_at_once(running, gate):
    worker, job_id = running("--grace", "300")
    worker.signal(signal.SIGTERM)
    gate("a").wait("stopping")
    worker.signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    assert_released(worker, job_id)


def test_ctrl_c_is_a_stop_signal_as_well(running, gate):
    worker, job_id = running("--grace", "300")
    worker.signal(signal.SIGINT)
    gate("a").wait("stopping")
    gate("a").say("go")
    assert worker.wait(SOON) == 0
    assert rows.outcomes(job_id) == ["completed"]


def assert_released(worker, job_id):
    assert [event["event"] for event in worker.events] == [
        "worker_started",
        "job_claimed",
        "claim_released_on_shutdown",
        "worker_stopped",
    ]
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, stored.claims) == ("ready", 0, 1)
    assert (stored.lease_token, stored.lease_until) == (None, None)
    attempt = JobAttempt.objects.get()
    assert (attempt.job_id, attempt.outcome) == (job_id, "released")
    assert attempt.started_at <= attempt.finished_at
    assert not GeneratedReport.objects.exists()


def test_a_released_job_runs_again_at_once(running, worker_process, gate):
    worker, job_id = running("--grace", "0")
    worker.signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    gate("a").say("go")
    assert worker_process("--drain").wait() == 0
    assert (rows.job(job_id).status, rows.job(job_id).attempts) == ("done", 1)
    assert rows.outcomes(job_id) == ["released", "completed"]


def test_an_idle_worker_ends_before_its_poll_interval(queue_db, worker_process):
    worker = worker_process("--poll-min", "60", "--poll-max", "60")
    worker.wait_event("worker_started")
    began = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert time.monotonic() - began < SOON
    assert [event["event"] for event in worker.events] == ["worker_started", "worker_stopped"]
