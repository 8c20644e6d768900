"""The log: what an operator alerts on is there, and no value of any payload ever is."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from typing import Any

from django_leasequeue import enqueue
from django_leasequeue.models import Job, JobAttempt
from tests.faults.frozen import freeze, thaw
from tests.process import rows
from tests.waiting import wait_until

SECRET = "Zq7-marker-of-a-secret"


def test_payload_values_reach_neither_the_log_nor_the_errors(queue_db, worker_process):
    reports: list[dict[str, Any]] = [
        {"tenant_id": SECRET, "report_month": SECRET},
        {"tenant_id": SECRET, "report_month": "2042-01", "test_transient_until_attempt": 9},
        {"tenant_id": SECRET, "report_month": "2042-01", SECRET: SECRET},
    ]
    for report in reports:
        enqueue("report.generate", report, max_attempts=1)
    others: list[tuple[str, dict[str, Any]]] = [
        ("unsupported.fixture", {"secret": SECRET}),
        ("proc.note", {"text": SECRET}),
        ("proc.note", {"text": SECRET, "more": SECRET}),
        ("proc.note", {"text": {"wrong": SECRET}}),
        ("proc.fail", {"secret": SECRET}),
        ("proc.quote_sql", {"secret": SECRET}),
        ("proc.wait", {"gate": SECRET, "first_run": SECRET, "none": SECRET}),
    ]
    for job_type, payload in others:
        enqueue(job_type, payload, key=f"{SECRET}{job_type}{payload}", max_attempts=1)
    for log_format in ("json", "text"):
        options = ("--drain", "--log-format", log_format, "--max-jobs", "5")
        worker = worker_process(*options, env={"WORKER_ENABLE_TEST_FIXTURES": "1"})
        assert worker.wait() == 0
        assert "job_claimed" in worker.log()
        assert SECRET not in worker.log() + worker.output
    assert Job.objects.filter(status="dead").count() >= 6
    assert not Job.objects.filter(status="ready").exists()
    stored = [
        *Job.objects.values_list("last_error", "leased_by"),
        *JobAttempt.objects.values_list("error_class", "error_text", "frames", "worker"),
    ]
    assert SECRET not in str(stored)


def test_every_line_tells_when_and_who(queue_db, worker_process):
    job_id = enqueue("proc.note").id
    worker = worker_process("--drain", "--name", "mine")
    assert worker.wait() == 0
    assert worker.lines == []
    for event in worker.events:
        assert datetime.fromisoformat(event["time"]).tzinfo == UTC
        assert event["pid"] == worker.pid
    claimed, completed = worker.events[1:-1]
    names = ("event", "job_id", "job_type", "queue", "attempt")
    expected = {"job_id": job_id, "job_type": "proc.note", "queue": "default", "attempt": 1}
    assert {name: claimed[name] for name in names} == {"event": "job_claimed", **expected}
    assert {name: completed[name] for name in names} == {"event": "job_completed", **expected}
    assert claimed["worker"].startswith(f"mine:{os.uname().nodename}:{worker.pid}:")
    assert isinstance(completed["elapsed_ms"], int)


def test_the_log_shows_latency_retries_recovery_loss_release_and_shutdown(
    queue_db, worker_process, gate
):
    held = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    first = worker_process("--lease", "1.5")
    gate("a").wait("started")
    freeze(first, held)
    failing = enqueue("proc.fail", max_attempts=2).id
    gate("a").say("go")
    second = worker_process("--lease", "1.5", env={"WORKER_TEST_POST_CLAIM_PAUSE_MS": "600"})
    second.wait_event("job_completed", job_id=held)
    second.wait_event("job_dead", job_id=failing)
    thaw(first)
    lost = first.wait_event("job_lease_lost", job_id=held)
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    last = enqueue("proc.note").id
    wait_until(lambda: rows.job(last).status == "reserved")
    second.signal(signal.SIGTERM)
    assert second.wait() == 0

    assert lost["elapsed_ms"] >= 1000
    assert [(e["attempt"], e["error"]) for e in second.named("job_failed", job_id=failing)] == [
        (1, "ValueError"),
        (2, "ValueError"),
    ]
    assert second.named("leases_recovered", count=1)
    assert second.named("claim_released_on_shutdown", job_id=last)
    for worker in (first, second):
        assert worker.events[0]["event"] == "worker_started"
        assert worker.events[-1]["event"] == "worker_stopped"
        assert all(isinstance(e["elapsed_ms"], int) for e in worker.named("job_completed"))
