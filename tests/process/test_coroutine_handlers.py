"""Coroutine handlers in children: their database work, their interrupts, what they leave behind."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from reports.models import GeneratedReport
from tests.core.arrange import expire
from tests.process import rows
from tests.process.sessions import other_sessions

LEASE = ("--lease", "6", "--kill-after", "0.3")
crews = pytest.mark.parametrize("crew", [["--threads", "1"], ["--threads", "2"], ["--solo"]])


@crews
def test_database_work_and_what_is_left_of_it(queue_db, db_kind, worker_process, crew):
    """G8: refused in the loop's thread; else on one clean connection for all jobs of a slot."""
    before = other_sessions(queue_db)
    good = ["co.orm", "co.plain_orm", "co.run", "co.orm", "co.plain_orm", "co.run"]
    between = ["co.leaves_a_variable", "co.leaves_a_task", "co.leaves_a_variable"]
    ids = [
        enqueue(job_type).id for pair in zip(good[:3], between, strict=True) for job_type in pair
    ]
    ids += [enqueue(job_type).id for job_type in good[3:]]
    refused = [
        enqueue(job_type, max_attempts=1).id for job_type in ("co.sync_orm", "co.sync_orm_in_run")
    ]
    open_ended = enqueue("co.leaves_a_transaction", max_attempts=1).id
    after = enqueue("co.orm").id
    worker = worker_process(*crew)
    worker.wait_event("job_completed", job_id=after)
    for job_id in [*ids, *refused, open_ended]:
        worker.wait_event(
            "job_failed" if job_id in (*refused, open_ended) else "job_completed", job_id=job_id
        )

    results = [rows.job(job_id).result for job_id in [*ids, after]]
    told = [result for result in results if isinstance(result, dict)]
    assert {result["left"] for result in told} == {"nothing", "in a loop"}
    assert results.count("in its thread") == 2
    assert len(results) - len(told) == 3
    sessions = {result["session"] for result in told[:-1]}
    if db_kind != "sqlite":
        assert len(sessions) <= int(crew[-1]) if crew != ["--solo"] else len(sessions) == 1
        assert len(other_sessions(queue_db) - before) <= 2 + 2  # control's, and the slots'
    for job_id in refused:
        assert rows.job(job_id).last_error.startswith("SynchronousOnlyOperation")
    assert rows.outcomes(open_ended) == ["failed"]  # its row was rolled back
    assert GeneratedReport.objects.count() == len(told)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []


@crews
def test_acomplete_commits_with_the_job_s_end(queue_db, worker_process, gate, crew):
    """The rows and the end are one transaction, on the slot's thread; none without the lease."""
    ids = [enqueue("co.completes", {"text": "a"}).id for _ in range(3)]
    late = enqueue("co.completes_too_late", {"gate": str(gate("a"))}, priority=-1).id
    worker = worker_process(*crew, "--lease", "6")
    gate("a").wait(f"started-{late}")
    expire(queue_db, late)
    gate("a").say("complete")
    for job_id in ids:
        worker.wait_event("job_completed", job_id=job_id)
        assert rows.job(job_id).result == {"text": "a"}
    worker.wait_event("job_completed", job_id=late, attempt=2)
    assert rows.outcomes(late) == ["expired", "completed"]
    assert GeneratedReport.objects.count() == len(ids) + 1
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_time_limit_during_acomplete(queue_db, worker_process, gate, threads):
    """The coroutine is cancelled, the function is not: what it commits is the one end."""
    job_id = enqueue("co.completes_slowly", {"gate": str(gate("a"))}, timeout=0.5).id
    worker = worker_process("--kill-after", "20", "--threads", threads)
    gate("a").wait(f"CancelledError-{job_id}")
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id)
    assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("done", ["completed"])
    assert GeneratedReport.objects.count() == 1
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


#: What the time limit does to it; None where its process has to be killed.
WAYS = {
    "co.sleep": "CancelledError",
    "co.passes_over_all": None,
    "co.blocks_its_loop": None,
    "co.waits_in_a_thread": None,
}


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_time_limit(queue_db, worker_process, gate, threads):
    """G8, F3: awaiting ends with CancelledError; what cannot be cancelled is killed."""
    payload = {"gate": str(gate("a"))}
    ids = {enqueue(name, payload, timeout=0.3, max_attempts=1).id: name for name in WAYS}
    after = enqueue("co.leaves_a_variable", priority=-1).id
    worker = worker_process(*LEASE, "--processes", "2", "--threads", threads)
    worker.wait_event("job_completed", job_id=after)
    for job_id, name in ids.items():
        worker.wait_event("job_timed_out", job_id=job_id)
        assert (rows.job(job_id).status, rows.outcomes(job_id)[-1]) == ("dead", "timed_out"), name
        assert rows.job(job_id).last_error.startswith("JobTimeout"), name
        if WAYS[name] and threads == "1":
            assert gate("a").said(f"{WAYS[name]}-{job_id}"), name
            assert "killed" not in rows.job(job_id).last_error, name
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
