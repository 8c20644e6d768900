"""Several processes at once: twenty that enqueue one key, two that claim side by side."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from django_leasequeue import enqueue
from django_leasequeue.codec import digest_key
from django_leasequeue.models import Job
from reports.models import GeneratedReport
from tests.process import rows
from tests.process.sessions import other_sessions
from tests.waiting import wait_until

PROCESSES = 20


def test_twenty_processes_that_enqueue_one_key_get_one_id(
    queue_db, database_url, second_connection, manage
):
    patient = {"DATABASE_URL": f"{database_url}?lock_timeout=60"}
    rival = second_connection()
    with ThreadPoolExecutor(PROCESSES) as pool:
        with taking(rival, "monthly-report:acme:2042-01"):
            asked = [
                pool.submit(manage, "enqueue_report", "acme", "2042-01", env=patient)
                for _ in range(PROCESSES)
            ]
            if rival.vendor != "sqlite":  # which has no list of sessions
                wait_until(lambda: len(other_sessions(queue_db)) > PROCESSES, timeout=60)
        ended = [future.result() for future in asked]
    assert {(process.returncode, process.stderr) for process in ended} == {(0, "")}
    assert {process.stdout for process in ended} == {f"{Job.objects.get().id}\n"}


@contextmanager
def taking(rival, key):
    """Take the key in a transaction that is then rolled back: all who want it wait till then."""
    with rival.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(
            "INSERT INTO leasequeue_job (queue_name, job_type, idempotency_key) "
            "VALUES ('reports', 'rival', %s)",
            [digest_key(key)],
        )
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def test_workers_that_run_side_by_side_hold_different_jobs(queue_db, worker_process, gate):
    ids = [enqueue("proc.wait", {"gate": str(gate("a"))}).id for _ in range(3)]
    workers = [worker_process() for _ in range(2)]
    claims = [worker.wait_event("job_claimed") for worker in workers]
    assert sorted(claim["job_id"] for claim in claims) == ids[:2]
    holders = Job.objects.filter(status="reserved").order_by("id").values_list("leased_by")
    assert {name for (name,) in holders} == {claim["worker"] for claim in claims}
    gate("a").say("go")
    for worker in workers:
        worker.wait_event("job_completed")
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0]
    assert {*Job.objects.filter(id__in=ids[:2]).values_list("status")} == {("done",)}


def test_a_reservation_is_committed_and_holds_no_lock_while_the_handler_runs(
    queue_db, worker_process, gate
):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process()
    gate("a").wait("started")
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, len(stored.lease_token)) == ("reserved", 1, 16)
    assert stored.lease_until > stored.claimed_at
    assert not rows.is_locked(job_id)
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_report_that_exists_is_not_made_twice(queue_db, worker_process):
    payload = {"tenant_id": "acme", "report_month": "2042-01"}
    made = enqueue("report.generate", payload, queue="reports", key="the same")
    report = {"tenant_id": "acme", "report_month": "2042-01", "result_json": {"made": "before"}}
    GeneratedReport.objects.create(idempotency_key=made.idempotency_key, **report)
    refusal = pytest.raises(queue_db.Database.IntegrityError)
    with rows.raw_cursor(queue_db) as cursor, refusal:
        cursor.execute(
            "INSERT INTO generated_reports "
            "(idempotency_key, tenant_id, report_month, result_json, created_at) "
            "SELECT idempotency_key, tenant_id, report_month, result_json, created_at "
            "FROM generated_reports"
        )
    assert worker_process("--queues", "reports", "--drain").wait() == 0
    assert rows.outcomes(made.id) == ["completed"]
    assert GeneratedReport.objects.get().result_json == {"made": "before"}
