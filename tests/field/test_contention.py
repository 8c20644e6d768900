"""Many sessions at once: no deadlock or lock wait reaches a caller, every job is run once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed, renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from reports.models import GeneratedReport
from tests.core.arrange import claim_jobs
from tests.faults import Rival
from tests.worker_process import WorkerProcess

CLAIMERS, ENQUEUERS, EACH = 10, 4, 400
THREADS, TIMES = 20, 200


def in_session(work: Callable[[BaseDatabaseWrapper], int]) -> int:
    """Run in this thread's own default connection, and close it."""
    try:
        return work(connections["default"])
    finally:
        connections.close_all()


def rivals(count: int, work: Callable[[BaseDatabaseWrapper], int]) -> list[Rival[int]]:
    return [Rival(partial(in_session, work)) for _ in range(count)]


def finish(connection: BaseDatabaseWrapper, jobs: Sequence[Claimed]) -> None:
    """Settle, as a worker does, whatever somebody has locked for a moment a moment later.

    On PostgreSQL a claim whose statement began earlier locks a row in passing that it then finds
    claimed already.
    """
    left = [Ending(job.lease, Outcome(End.COMPLETED)) for job in jobs]
    while left:
        settled = settle(connection, left)
        assert Verdict.LOST not in {each.verdict for each in settled}
        left = [each.ending for each in settled if each.verdict is Verdict.PENDING]


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_claimers_and_enqueuers_on_a_small_table(queue_db):
    """A8: 10 that claim, renew, settle and recover, 4 that enqueue."""
    total = ENQUEUERS * EACH

    def produce(connection: BaseDatabaseWrapper) -> int:
        for n in range(EACH // 4):
            enqueue("t", {"n": n}, priority=n % 2)
            enqueue("t", {"n": n}, queue="other", delay=0.01)
            enqueue_many([("t", {"n": n}, {"queue": name}) for name in ("default", "other")])
        return EACH

    def consume(connection: BaseDatabaseWrapper) -> int:
        mine, lanes = 0, Lanes(("*",))
        while JobAttempt.objects.count() < total:
            jobs = claim_jobs(connection, 5, lanes=lanes)
            assert renew(connection, [job.lease for job in jobs], 60).lost == ()
            finish(connection, jobs)
            mine += len(jobs)
            assert recover_batch(connection) == []
        return mine

    working = [*rivals(ENQUEUERS, produce), *rivals(CLAIMERS, consume)]
    counts = [rival.result(100) for rival in working]
    assert sum(counts[ENQUEUERS:]) == total
    assert set(Job.objects.values_list("status", "claims")) == {("done", 1)}
    assert set(JobAttempt.objects.values_list("outcome", "number")) == {("completed", 1)}
    assert Job.objects.count() == JobAttempt.objects.count() == total


def test_twenty_threads_enqueue_one_key_200_times(queue_db):
    """C10: key_until="forever": every call returns the one job that there is."""

    def produce(connection: BaseDatabaseWrapper) -> int:
        (made,) = {enqueue("t", {}, key="k").id for _ in range(TIMES)}
        return made

    assert {rival.result(100) for rival in rivals(THREADS, produce)} == {Job.objects.get().id}


def test_twenty_threads_enqueue_a_key_that_is_freed_again_and_again(queue_db):
    """C10: key_until="finished": one live job at a time, and a consumer that ends each."""
    producers: list[Rival[int]] = []

    def produce(connection: BaseDatabaseWrapper) -> int:
        made = [enqueue("t", {}, key="k", key_until="finished") for _ in range(TIMES)]
        return sum(job.created for job in made)

    def consume(connection: BaseDatabaseWrapper) -> int:
        ended, lanes = 0, Lanes(("default",))
        while jobs := claim_jobs(connection, 5, lanes=lanes) or not all(p.ended for p in producers):
            if jobs is True:
                continue
            finish(connection, jobs)
            ended += len(jobs)
        return ended

    producers += rivals(THREADS, produce)
    (consumer,) = rivals(1, consume)
    created = sum(rival.result(100) for rival in producers)
    ended = consumer.result(100)
    assert created == Job.objects.count() == ended + Job.objects.filter(status="ready").count()
    assert Job.objects.filter(status="ready").count() <= 1


@pytest.mark.only_on("sqlite")
def test_four_processes_and_a_writer_on_one_file(queue_db, worker_process):
    """A11: no job runs twice, and SQLITE_BUSY ends no loop."""
    workers: list[WorkerProcess] = [worker_process("--poll-max", "0.1") for _ in range(4)]
    for worker in workers:
        worker.wait_event("worker_started")
    ids = [enqueue("proc.report").id for _ in range(EACH)]
    for n in range(50):
        values = {"tenant_id": "web", "report_month": "2042-01", "result_json": {}}
        GeneratedReport.objects.create(idempotency_key=f"web-{n}", **values)
    drained = worker_process("--drain")
    assert drained.wait(60) == 0
    for worker in workers:
        worker.signal(15)
    assert [worker.wait() for worker in workers] == [0] * 4
    assert {event["event"] for worker in workers for event in worker.events} <= {
        "worker_started",
        "job_claimed",
        "job_completed",
        "worker_stopped",
    }
    # A claim ahead that was given back before its start is no run.
    assert set(Job.objects.values_list("status", "attempts")) == {("done", 1)}
    assert JobAttempt.objects.count() == EACH
    reports = GeneratedReport.objects.exclude(tenant_id="web").values_list("tenant_id", flat=True)
    assert sorted(reports) == sorted(f"job-{job_id}" for job_id in ids)
