"""Seed S1's exercise: enqueue twice, several tenants and workers, shutdown right after a claim."""

from __future__ import annotations

import hashlib
import signal

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import Job, JobAttempt
from reports.models import GeneratedReport
from tests.process import rows
from tests.waiting import wait_until

TENANTS = ("acme", "globex", "initech", "umbrella", "hooli", "wonka")


def test_enqueueing_twice_prints_the_same_id(manage, queue_db):
    printed = [manage("enqueue_report", "acme", "2042-01") for _ in range(2)]
    assert [(ended.returncode, ended.stderr) for ended in printed] == [(0, "")] * 2
    stored = Job.objects.get()
    assert [ended.stdout for ended in printed] == [f"{stored.id}\n"] * 2
    key = hashlib.sha256(b"monthly-report:acme:2042-01").hexdigest()
    assert (stored.queue_name, stored.job_type) == ("reports", "report.generate")
    assert stored.idempotency_key == key
    assert stored.payload == {"tenant_id": "acme", "report_month": "2042-01"}


@pytest.mark.only_on("mariadb", "mysql")
def test_the_statement_of_the_reference_producer_meets_the_same_job(queue_db):
    job_id = enqueue("report.generate", {}, queue="reports", key="monthly-report:acme:2042-01").id
    with rows.raw_cursor(queue_db) as cursor:
        cursor.execute(
            "INSERT INTO leasequeue_job (queue_name, job_type, payload, idempotency_key) "
            "VALUES ('reports', 'report.generate', "
            "JSON_OBJECT('tenant_id', 'acme', 'report_month', '2042-01'), "
            "SHA2('monthly-report:acme:2042-01', 256)) "
            "ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"
        )
        cursor.execute("SELECT LAST_INSERT_ID()")
        assert cursor.fetchone() == (job_id,)
    assert Job.objects.count() == 1


def test_four_columns_of_plain_sql_are_a_job(queue_db, worker_process):
    with rows.raw_cursor(queue_db) as cursor:
        cursor.execute(
            "INSERT INTO leasequeue_job (queue_name, job_type, payload, idempotency_key) VALUES "
            "('reports', 'report.generate', "
            """'{"tenant_id": "acme", "report_month": "2042-01"}', 'any text of up to 64')"""
        )
    assert worker_process("--queues", "reports", "--drain").wait() == 0
    stored = Job.objects.get()
    assert (stored.status, stored.attempts, rows.outcomes(stored.id)) == ("done", 1, ["completed"])
    report = GeneratedReport.objects.get()
    assert (report.tenant_id, report.idempotency_key) == ("acme", "any text of up to 64")


def test_workers_claim_different_rows_of_several_tenants(queue_db, worker_process):
    for tenant in TENANTS:
        payload = {"tenant_id": tenant, "report_month": "2042-01"}
        enqueue("report.generate", payload, queue="reports")
    pause = {"WORKER_TEST_POST_CLAIM_PAUSE_MS": "100"}
    workers = [worker_process("--queues", "reports", "--drain", env=pause) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    claimed = [event["job_id"] for worker in workers for event in worker.named("job_claimed")]
    assert sorted(claimed) == sorted(Job.objects.values_list("id", flat=True))
    assert {*Job.objects.values_list("status", "attempts")} == {("done", 1)}
    reports = GeneratedReport.objects.order_by("tenant_id").values_list("tenant_id", flat=True)
    assert list(reports) == sorted(TENANTS)


def test_sigterm_right_after_the_claim_releases_the_job(manage, queue_db, worker_process):
    job_id = int(manage("enqueue_report", "shutdown-test", "2042-02").stdout)
    pause = {"WORKER_TEST_POST_CLAIM_PAUSE_MS": "1000"}
    worker = worker_process("--queues", "reports", env=pause)
    wait_until(lambda: rows.job(job_id).status == "reserved")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    names = [event["event"] for event in worker.events]
    assert names == ["worker_started", "claim_released_on_shutdown", "worker_stopped"]
    assert worker.named("claim_released_on_shutdown", job_id=job_id)
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts) == ("ready", 0)
    assert (stored.lease_token, stored.lease_until) == (None, None)
    assert stored.last_error == "Released during shutdown before processing"
    assert not JobAttempt.objects.exists()
    assert not GeneratedReport.objects.exists()


def test_a_shutdown_releases_nothing_but_its_own_token(queue_db, worker_process):
    job_id = enqueue("proc.note").id
    worker = worker_process(env={"WORKER_TEST_POST_CLAIM_PAUSE_MS": "1000"})
    wait_until(lambda: rows.job(job_id).status == "reserved")
    with queue_db.cursor() as cursor:
        # As if the lease had lapsed and another worker had claimed the job since.
        cursor.execute("UPDATE leasequeue_job SET lease_token = %s", [b"another's token."])
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    names = [event["event"] for event in worker.events]
    assert names == ["worker_started", "claim_release_lost", "worker_stopped"]
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts) == ("reserved", 1)
    assert bytes(stored.lease_token) == b"another's token."
    Job.objects.all().delete()
