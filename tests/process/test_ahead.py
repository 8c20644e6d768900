"""Claim-ahead: short jobs are claimed some at a time, and none waits long behind a long one."""

from __future__ import annotations

import signal
import time

import pytest
from django.db import transaction
from django.utils import timezone

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from tests.process import rows
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

AT_ONCE = 0.6


@pytest.fixture
def trained(queue_db, worker_process):
    """Start a worker of one child that has seen short jobs only."""

    def start(*options, env=None, jobs=5):
        last = enqueue_many([("proc.note", {}, {})] * jobs)[-1].id
        worker = worker_process(*options, env=env)
        worker.wait_event("job_completed", job_id=last)
        return worker

    return start


def running_for(job_id):
    """Return for how many seconds the job has been claimed."""
    return (timezone.now() - rows.job(job_id).claimed_at).total_seconds()


def test_what_waits_behind_a_long_job_is_given_back_and_run_elsewhere(
    trained, worker_process, gate
):
    """A19: within about a second, with its attempt and its history as if nothing had been.

    Never claimed ahead: a job on its last attempt, and what comes after it.
    """
    worker = trained()
    with transaction.atomic():
        long = enqueue("proc.wait", {"gate": str(gate("a"))}).id
        behind = [enqueue("proc.note").id for _ in range(4)]
        last = enqueue("proc.note", max_attempts=1).id
        after = enqueue("proc.note").id
    gate("a").wait("started")
    began = time.monotonic()
    wait_until(lambda: rows.job(behind[-1]).claims)
    wait_until(lambda: not Job.objects.filter(pk__in=behind, status="reserved").exists())
    assert time.monotonic() - began < 3
    assert set(Job.objects.filter(pk__in=behind).values_list("status", "attempts", "claims")) == {
        ("ready", 0, 1)
    }
    assert (rows.job(last).claims, rows.job(after).claims) == (0, 0)
    other = worker_process()
    for job_id in (*behind, last, after):
        other.wait_event("job_completed", job_id=job_id, attempt=1)
    assert rows.job(long).status == "reserved"
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=long)
    for one in (worker, other):
        one.signal(signal.SIGTERM)
        assert one.wait() == 0
    claims = dict(Job.objects.values_list("id", "claims"))
    assert [claims[job_id] for job_id in (long, *behind, last, after)] == [1, 2, 2, 2, 2, 1, 1]
    assert set(Job.objects.values_list("status", "attempts", "last_error")) == {("done", 1, "")}
    assert set(JobAttempt.objects.values_list("outcome", flat=True)) == {"completed"}
    assert JobAttempt.objects.count() == Job.objects.count()


def test_a_job_that_crashed_before_is_not_claimed_ahead(trained, queue_db, gate):
    worker = trained()
    with transaction.atomic(), queue_db.cursor() as cursor:
        enqueue("proc.wait", {"gate": str(gate("a"))})
        ahead = enqueue("proc.note").id
        crashed = enqueue("proc.note").id
        cursor.execute("UPDATE leasequeue_job SET crashes = 1 WHERE id = %s", [crashed])
    wait_until(lambda: rows.job(ahead).claims)
    wait_until(lambda: rows.job(ahead).status == "ready")
    assert rows.job(crashed).claims == 0
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=crashed)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_sigterm_gives_back_at_once_what_has_not_started(trained, gate):
    """While a handler runs, and before the second is over in which it would come back anyway."""
    seconds = []
    while not seconds or (min(seconds) > AT_ONCE and len(seconds) < 3):  # the machine may be busy
        name = f"{len(seconds)}"
        worker = trained("--grace", "60")
        with transaction.atomic():
            long = enqueue("proc.wait", {"gate": str(gate(name))}).id
            behind = [enqueue("proc.note").id for _ in range(4)]
        gate(name).wait("started")
        began = time.monotonic()
        worker.signal(signal.SIGTERM)
        for job_id in behind:
            worker.wait_event("claim_released_on_shutdown", job_id=job_id)
        seconds.append(time.monotonic() - began)
        gate(name).say("go")
        assert worker.wait() == 0
        assert rows.outcomes(long) == ["completed"]
        assert not JobAttempt.objects.filter(job_id__in=behind).exists()
        found = Job.objects.filter(pk__in=behind).values_list("status", "attempts", "claims")
        assert set(found) == {("ready", 0, 1)}
        Job.objects.filter(pk__in=behind).delete()
    assert min(seconds) < AT_ONCE


def test_sigterm_in_the_gap_before_the_handler(trained):
    """S1's shutdown race: the job that is next, and those behind it, are as they were."""
    worker = trained(env={"WORKER_TEST_POST_CLAIM_PAUSE_MS": "1500"}, jobs=1)
    with transaction.atomic():
        jobs = [enqueue("proc.note").id for _ in range(4)]
    wait_until(lambda: Job.objects.filter(pk__in=jobs, status="reserved").count() == 4)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert len(worker.named("claim_released_on_shutdown")) == len(jobs)
    assert len(worker.named("job_completed")) == 1
    found = Job.objects.filter(pk__in=jobs).values_list("status", "attempts", "claims")
    assert set(found) == {("ready", 0, 1)}
    assert JobAttempt.objects.filter(job_id__in=jobs).count() == 0


def test_first_in_first_out(trained):
    worker = trained()
    jobs = [one.id for one in enqueue_many([("proc.note", {}, {})] * 120)]
    worker.wait_event("job_completed", job_id=jobs[-1])
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    for event in ("job_claimed", "job_completed"):
        assert [entry["job_id"] for entry in worker.named(event)][-120:] == jobs


def test_a_slow_receiver_of_jobs_claimed_stops_nothing(trained):
    """What waits behind it is given back; it is not taken for a process that hangs."""
    worker = trained("--drain", env={"WORKER_TEST_POST_CLAIM_PAUSE_MS": "1300"}, jobs=3)
    assert worker.wait() == 0
    assert set(Job.objects.values_list("status", "attempts")) == {("done", 1)}
    assert not worker.named("job_crashed")


def test_nothing_waits_behind_a_long_job_while_another_child_is_free(trained, gate):
    worker = trained("--processes", "2")
    long = enqueue("proc.wait", {"gate": str(gate("b"))}).id
    gate("b").wait("started")
    wait_until(lambda: running_for(long) > AT_ONCE)  # by then nobody takes it for a short one
    last = enqueue_many([("proc.note", {}, {})] * 300)[-1].id
    worker.wait_event("job_completed", job_id=last)
    assert set(Job.objects.values_list("claims", flat=True)) == {1}
    gate("b").say("go")
    worker.wait_event("job_completed", job_id=long)
