"""The database goes away from a running worker and comes back: it goes on, and no job is lost."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

import pytest

from django_leasequeue import enqueue, reschedule
from django_leasequeue.models import Job, JobAttempt
from tests.process import rows
from tests.process.sessions import sever
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

KEPT = {"PROCESS_TEST_KEEP_CONNECTIONS": "1"}


def lines_about_the_database(worker):
    names = ("database_lost", "database_back")
    return [event["event"] for event in worker.events if event["event"] in names]


def stop(worker):
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []
    assert lines_about_the_database(worker) in ([], ["database_lost", "database_back"])


def test_an_idle_worker_outlives_its_sessions(queue_db, worker_process):
    first = enqueue("proc.report").id
    worker = worker_process(env=KEPT)
    completed = worker.wait_event("job_completed", job_id=first)
    # A connection that was in use within the last second is trusted without a question.
    used = datetime.fromisoformat(completed["time"])
    wait_until(lambda: datetime.now(UTC) > used + timedelta(seconds=1.2))
    assert sever(queue_db)
    second = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=second)
    stop(worker)
    assert {*Job.objects.values_list("status", "attempts")} == {("done", 1)}


def test_a_running_handler_outlives_its_workers_sessions(queue_db, worker_process, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--lease", "4")
    gate("a").wait("started")
    assert sever(queue_db)
    deadline = rows.job(job_id).lease_until
    wait_until(lambda: rows.job(job_id).lease_until > deadline)
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)
    assert rows.outcomes(job_id) == ["completed"]


def test_a_transaction_that_was_severed_leaves_nothing_and_is_tried_again(
    queue_db, worker_process, gate
):
    job_id = enqueue("proc.wait_atomic", {"gate": str(gate("a"))}).id
    worker = worker_process()
    gate("a").wait("started")
    assert sever(queue_db)
    gate("a").say("go")
    worker.wait_event("job_failed", job_id=job_id, attempt=1)
    assert reschedule(job_id) == [job_id]
    worker.wait_event("job_completed", job_id=job_id, attempt=2)
    stop(worker)
    attempts = JobAttempt.objects.order_by("number").values_list("outcome", flat=True)
    assert list(attempts) == ["failed", "completed"]


def test_an_unreachable_server_is_waited_for(queue_db, worker_process, proxy, by_proxy):
    # A failed handler's connection is thrown away: the worker meets the outage with none.
    failed = enqueue("proc.exit", {"name": "SystemExit"}, max_attempts=1).id
    worker = worker_process(env=by_proxy)
    worker.wait_event("job_dead", job_id=failed)
    proxy.cut()
    worker.wait_event("database_lost")
    job_id = enqueue("proc.report").id
    proxy.mend()
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)
    assert lines_about_the_database(worker) == ["database_lost", "database_back"]


def test_an_outage_beyond_the_limit_ends_the_worker(queue_db, worker_process, proxy, by_proxy):
    """With exit code 1, for a supervisor; its next start finds a job that came meanwhile."""
    limited = {**by_proxy, "PROCESS_TEST_OUTAGE_LIMIT": "1"}
    worker = worker_process(env=limited)
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)  # it is connected
    proxy.cut()
    worker.wait_event("worker_fatal")
    assert worker.wait() == 1
    assert lines_about_the_database(worker) == ["database_lost"]
    assert worker.lines == []
    job_id = enqueue("proc.note").id
    proxy.mend()
    again = worker_process(env=limited)
    again.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(again)


def test_an_outcome_waits_for_the_server_as_long_as_its_lease(
    queue_db, worker_process, proxy, by_proxy, gate
):
    job_id = enqueue("proc.wait", {"gate": str(gate("a")), "first_run": "raise"}).id
    worker = worker_process("--lease", "20", env=by_proxy)
    gate("a").wait("started")
    proxy.cut()
    gate("a").say("go")
    worker.wait_event("database_lost")
    proxy.mend()
    worker.wait_event("job_failed", job_id=job_id, attempt=1)
    assert rows.outcomes(job_id) == ["failed"]
    stop(worker)
    assert lines_about_the_database(worker) == ["database_lost", "database_back"]


@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_stop_during_an_outage_is_orderly(queue_db, worker_process, proxy, by_proxy, how):
    worker = worker_process("--lease", "4", env=by_proxy)
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)  # it is connected
    getattr(proxy, how)()
    worker.wait_event("database_lost")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    names = [event["event"] for event in worker.events if event["event"] != "renewal_failed"]
    assert names[-2:] == ["database_lost", "worker_stopped"]


def test_a_worker_started_too_early_waits_for_its_server(queue_db, worker_process, proxy, by_proxy):
    job_id = enqueue("proc.report").id
    proxy.cut()
    worker = worker_process(env=by_proxy)
    worker.wait_event("database_lost")
    proxy.mend()
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)


@pytest.mark.parametrize("how", ["cut", "stall"])
def test_an_outage_longer_than_the_lease_costs_an_attempt_but_no_job(
    queue_db, worker_process, proxy, by_proxy, gate, how
):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--lease", "1.5", env=by_proxy)
    gate("a").wait("started")
    getattr(proxy, how)()
    wait_until(lambda: rows.job(job_id).lease_until < datetime.now(UTC))
    gate("a").say("go")
    worker.wait_event("job_lease_lost", job_id=job_id, attempt=1)
    worker.wait_event("database_lost")
    proxy.mend()
    worker.wait_event("leases_recovered", count=1)
    worker.wait_event("job_completed", job_id=job_id, attempt=2)
    stop(worker)
    assert rows.outcomes(job_id) == ["expired", "completed"]
