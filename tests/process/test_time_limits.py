"""Time limits: a handler that outlasts its own ends once, and no other job notices."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

import pytest

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from reports.models import GeneratedReport
from tests.process import rows

LIMIT = 0.05
LEASE = ("--lease", "6", "--kill-after", "0.5")
on_servers = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.mark.parametrize(
    "crew",
    [
        pytest.param(["--processes", "8"], id="children", marks=on_servers),
        pytest.param(["--threads", "8"], id="threads", marks=on_servers),
        pytest.param(["--solo"], id="solo"),
    ],
)
def test_an_attempt_that_ends_at_its_limit_has_one_end(queue_db, db_kind, worker_process, crew):
    """F3: 500 and 500 runs on MariaDB, 100 and 100 elsewhere, 24 solo; half of them complete()."""
    solo = crew == ["--solo"]
    runs = 24 if solo else 500 if db_kind == "mariadb" else 100
    # Limits are looked at when anything happens in the worker: all the time, or twice a second.
    span = 0.5 if solo else 0.03
    payloads = [
        {"seconds": LIMIT - 0.005 + span * number / runs, "completes": number % 2 == 0}
        for number in range(runs)
    ]
    options = {"timeout": LIMIT, "max_attempts": 1}
    enqueue_many([("hang.edge", payload, options) for payload in payloads])
    worker = worker_process("--drain", "--lease", "20", *crew)
    assert worker.wait(120) == 0

    ends = Counter(JobAttempt.objects.values_list("outcome", flat=True))
    errors = list(JobAttempt.objects.filter(outcome="failed").values_list("error_text", "frames"))
    assert set(ends) == {"completed", "timed_out"}, errors  # both did happen
    assert ends.total() == runs
    statuses = {"completed": "done", "timed_out": "dead"}
    attempts = JobAttempt.objects.values_list("job_id", "outcome")
    assert {job_id: statuses[end] for job_id, end in attempts} == dict(
        Job.objects.values_list("id", "status")
    )
    completed = {f"job-{one.pk}" for one in Job.objects.filter(status="done") if _completes(one)}
    assert set(GeneratedReport.objects.values_list("tenant_id", flat=True)) == completed
    logged = Counter(
        event["job_id"]
        for event in worker.events
        if event["event"] in ("job_completed", "job_timed_out")
    )
    assert logged == dict.fromkeys(Job.objects.values_list("id", flat=True), 1)
    # None was ended by what was meant for the one before it.
    assert min(event["elapsed_ms"] for event in worker.named("job_timed_out")) >= LIMIT * 1000
    assert not worker.named("job_failed")


def _completes(one):
    return one.payload["completes"]


#: How each handler ends, and whether its process has to be killed.
STUBBORN = {
    "hang.sleep": ("JobTimeout", False),
    "hang.passes_over_errors": ("JobTimeout", False),
    "hang.cleans_up": ("JobTimeout", False),
    "hang.in_a_statement": (None, None),
    "hang.passes_over_all": (None, True),
    "hang.cleans_up_long": (None, True),
}


def test_however_a_handler_resists_it_has_timed_out(queue_db, worker_process, gate):
    """F3: errors passed over, slow `finally`, statements; what cannot be ended is killed."""
    ids = {}
    for name in STUBBORN:
        payload: dict[str, Any] = {"gate": str(gate("a"))}
        if name.startswith("hang.cleans_up"):
            payload["seconds"] = 3600 if name.endswith("_long") else 0.1
        job_type = name.removesuffix("_long")
        ids[name] = enqueue(job_type, payload, timeout=0.3, max_attempts=1).id
    after = enqueue("hang.pid", priority=-1).id
    worker = worker_process(*LEASE, "--processes", "3")
    worker.wait_event("job_completed", job_id=after)
    for name, (ending, killed) in STUBBORN.items():
        worker.wait_event("job_timed_out", job_id=ids[name])
        stored = rows.job(ids[name])
        assert (stored.status, rows.outcomes(ids[name])) == ("dead", ["timed_out"]), name
        assert stored.last_error.startswith("JobTimeout"), name
        if killed is not None:
            assert ("killed" in stored.last_error) is killed, name
        if ending is not None:
            assert gate("a").said(f"{ending}-{ids[name]}"), name
    stop(worker)


@pytest.mark.parametrize("after", [False, True], ids=["not yet applied", "applied"])
def test_told_to_end_between_the_last_statement_and_the_commits_answer(
    queue_db, worker_process, gate, after
):
    """F3: the outcome is completed: once the fence is passed nothing else can be said."""
    payload = {"gate": str(gate("a")), "after": after}
    job_id = enqueue("hang.slow_commit", payload, timeout=0.3, max_attempts=1).id
    worker = worker_process("--lease", "20", "--drain")
    assert worker.wait() == 0
    assert gate("a").said("told")
    assert not gate("a").said("went on")
    assert worker.named("job_completed", job_id=job_id)
    # It was the worker's own interrupt that came after it: no fault of the handler's.
    assert not worker.named("handler_failed_after_completion")
    assert not worker.named("job_timed_out")
    assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("done", ["completed"])
    assert GeneratedReport.objects.count() == 1


def test_killed_after_it_has_completed(queue_db, worker_process, gate):
    """F3: the job stays done, and its child is replaced."""
    job_id = enqueue("hang.after_completing", {"gate": str(gate("a"))}, timeout=0.3).id
    worker = worker_process(*LEASE)
    gate("a").wait(f"passed-over-{job_id}")
    after = enqueue("hang.pid").id
    worker.wait_event("job_completed", job_id=after)
    assert not worker.named("job_timed_out")
    assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("done", ["completed"])
    stop(worker)


def test_always_too_long(queue_db, worker_process, gate):
    """F8: as many attempts as it has, then dead."""
    payload = {"gate": str(gate("a"))}
    job_id = enqueue("hang.sleep", payload, timeout=0.2, max_attempts=3).id
    worker = worker_process("--drain")
    assert worker.wait() == 0
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, stored.crashes) == ("dead", 3, 0)
    assert rows.outcomes(job_id) == ["timed_out"] * 3
    assert len(worker.named("job_timed_out")) == 3
    assert worker.named("job_dead", attempt=3)


@pytest.mark.parametrize("setting", [None, 70])
def test_whose_limit_counts(queue_db, worker_process, setting):
    """B13: the row's before its type's before the setting's; None at the row says nothing."""
    ids = {
        enqueue("hang.remaining").id: setting,
        enqueue("hang.remaining", timeout=None).id: setting,
        enqueue("hang.remaining", timeout=90).id: 90,
        enqueue("hang.remaining_of_50").id: 50,
        enqueue("hang.remaining_of_50", timeout=None).id: 50,
        enqueue("hang.remaining_of_50", timeout=20).id: 20,
        enqueue("hang.remaining_of_50", timeout=80).id: 80,
    }
    env = {} if setting is None else {"PROCESS_TEST_TIMEOUT": str(setting)}
    assert worker_process("--drain", env=env).wait() == 0
    for job_id, limit in ids.items():
        for seconds in rows.job(job_id).result or ["nothing"]:
            if limit is None:
                assert seconds is None
            else:
                assert limit - 5 < seconds <= limit + 0.1


def stop(worker):
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
