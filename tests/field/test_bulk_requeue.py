"""I2: twelve thousand dead letters are requeued while workers are at it."""

from __future__ import annotations

import threading

from django.db.models import Max, Min

from django_leasequeue import requeue_many
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs
from tests.core.bulk import bury
from tests.waiting import wait_until

MANY = 12_000


def work(connection, over):
    """Claim and complete as two workers' control would, until there is nothing left."""
    while complete_some(connection) or not over.wait(0.01):
        pass


def complete_some(connection):
    """Complete what can be claimed now, and return it.

    PostgreSQL's claim may hold, until it commits, rows that it found claimed by another worker
    once it had their lock; that worker's settling steps aside for them, and is repeated.
    """
    jobs = claim_jobs(connection, 100)
    left = [Ending(one.lease, Outcome(End.COMPLETED)) for one in jobs]
    while left:
        results = settle(connection, left)
        assert all(result.verdict is not Verdict.LOST for result in results)
        left = [result.ending for result in results if result.verdict is Verdict.PENDING]
    return jobs


def test_two_workers_beside_it(connection, second_connection):
    bury(MANY, queue_name="bulk")
    over = threading.Event()
    met = []
    workers = [
        threading.Thread(target=work, args=[second_connection(), over], name=f"worker {n}")
        for n in range(2)
    ]
    for worker in workers:
        worker.start()

    def told(chunk):
        met.append(len(chunk.changed))
        if len(met) == 10:  # they are not kept waiting until all of it is over
            wait_until(lambda: Job.objects.filter(status="done").exists())

    try:
        row = requeue_many(JobFilter(queue="bulk"), told=told)
    finally:
        over.set()
        for worker in workers:
            worker.join(100)
    assert (row.changed, row.left_out, sum(met)) == (MANY, {}, MANY)
    # Each may have met nothing but rows that the other one had locked, and ended for that.
    wait_until(lambda: not complete_some(connection))
    assert Job.objects.filter(status="done").count() == MANY
    assert JobAttempt.objects.count() == MANY
    assert Job.objects.aggregate(least=Min("claims"), most=Max("claims")) == {"least": 1, "most": 1}
