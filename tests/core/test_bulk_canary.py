"""The jobs that go first: the others follow when all of these are done, and only then."""

from __future__ import annotations

import pytest

from django_leasequeue import requeue
from django_leasequeue.core.bulk import cancel_run, go_on, requeue_many, start
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import BulkRun, Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs
from tests.core.bulk import after_chunk, bury, statuses

pytestmark = pytest.mark.usefixtures("connection")


@pytest.fixture
def work(connection):
    """Run what is due, as a worker would; the jobs in `bad` end dead."""

    def run(bad=()):
        jobs = claim_jobs(connection, 10)
        settle(
            connection,
            [
                Ending(one.lease, Outcome(End.REJECTED if one.job_id in bad else End.COMPLETED))
                for one in jobs
            ],
        )
        return [one.job_id for one in jobs]

    return run


def test_good_ones_let_the_others_follow(work):
    ids = bury(500)
    row = requeue_many(JobFilter(), canary=5, spread=3600, told=after_chunk(1, work))
    assert (row.state, row.changed, row.canary) == ("finished", 500, ids[:5])
    assert statuses(ids) == ["done"] * 5 + ["ready"] * 495
    assert Job.objects.due().count() < 100  # those that went first were not spread


def test_a_bad_one_stops_the_run_until_it_is_mended(work):
    ids = bury(500)
    row = requeue_many(JobFilter(), canary=5, told=after_chunk(1, lambda: work(bad=ids[2:3])))
    assert (row.state, row.changed) == ("stopped", 5)
    assert row.note == f"1 of 5 that went first: job {ids[2]} (dead)"
    assert statuses(ids) == ["done"] * 2 + ["dead"] + ["done"] * 2 + ["dead"] * 495
    assert go_on(row.pk).state == "stopped"
    requeue(ids[2])
    assert work() == [ids[2]]
    row = go_on(row.pk)
    assert (row.state, row.changed, row.note) == ("finished", 500, "")
    assert statuses(ids) == ["done"] * 5 + ["ready"] * 495


def test_the_wait_is_bounded(work):
    ids = bury(10)
    row = requeue_many(JobFilter(), canary=3, canary_wait=0)
    assert (row.state, row.changed) == ("stopped", 3)
    assert row.note == "of those that went first: 3 ready"
    assert work() == ids[:3]
    assert go_on(row.pk).changed == 10


def test_a_job_that_went_first_and_is_gone_is_bad():
    ids = bury(10)
    row = requeue_many(
        JobFilter(), canary=1, told=after_chunk(1, Job.objects.filter(pk=ids[0]).delete)
    )
    assert (row.state, row.note) == ("stopped", f"1 of 1 that went first: job {ids[0]} (gone)")


def test_fewer_jobs_than_are_to_go_first():
    bury(2)
    row = requeue_many(JobFilter(), canary=5)
    assert (row.state, row.changed) == ("finished", 2)


def test_cancelling_while_it_waits():
    ids = bury(10)
    row = start("requeue", JobFilter(), Options(canary=2))
    row = go_on(row.pk, told=after_chunk(1, lambda: cancel_run(row.pk)))
    assert (row.state, row.changed) == ("cancelled", 2)
    assert statuses(ids).count("dead") == 8


def test_a_crash_while_it_waits(work):
    ids = bury(10)
    row = start("requeue", JobFilter(), Options(canary=2))

    def crash():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_on(row.pk, told=after_chunk(1, crash))
    assert BulkRun.objects.get().state == "canary"
    assert work() == ids[:2]
    row = go_on(row.pk)
    assert (row.state, row.changed) == ("finished", 10)
    assert statuses(ids) == ["done"] * 2 + ["ready"] * 8
