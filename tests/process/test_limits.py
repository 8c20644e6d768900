"""Limits: a worker ends after its jobs or seconds; a used-up or oversized child is replaced."""

from __future__ import annotations

import signal
import time
from collections import Counter
from datetime import UTC, datetime

import pytest

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from tests.faults.tree import children_of
from tests.process import rows
from tests.waiting import wait_until

LATER = datetime(2099, 1, 1, tzinfo=UTC)
SHAPES = {
    "one child": (),
    "children": ("--processes", "3"),
    "threads": ("--threads", "4"),
    "solo": ("--solo",),
}


def fill(count, job_type="proc.note", payload=None):
    return [one.id for one in enqueue_many([(job_type, payload or {}, {})] * count)]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_more_jobs_than_max_jobs(queue_db, worker_process, shape):
    """What is claimed ahead counts: nothing beyond the limit is claimed, let alone started."""
    ids = fill(70)
    worker = worker_process("--max-jobs", "43", *SHAPES[shape])
    assert worker.wait() == 0
    assert len(worker.named("job_completed")) == 43
    assert JobAttempt.objects.count() == 43
    left = Job.objects.filter(status="ready", attempts=0)
    assert left.count() == 27
    assert not Job.objects.filter(status="reserved").exists()
    if shape in ("one child", "solo"):  # first in, first out
        assert [event["job_id"] for event in worker.named("job_completed")] == ids[:43]
        assert list(left.values_list("id", flat=True).order_by("id")) == ids[43:]


def test_max_seconds_is_a_stop(queue_db, worker_process, gate):
    waiting = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    began = time.monotonic()
    worker = worker_process("--max-seconds", "6", "--grace", "60")
    gate("a").wait("stopping")
    after = enqueue("proc.note").id
    gate("a").say("go")
    assert worker.wait() == 0
    assert 6 < time.monotonic() - began < 19.5
    assert rows.outcomes(waiting) == ["completed"]
    assert rows.job(after).status == "ready"


def test_a_child_is_replaced_after_its_share_of_jobs(queue_db, worker_process):
    fill(23, "res.pid")
    worker = worker_process("--max-jobs-per-child", "5", "--processes", "2", "--drain")
    assert worker.wait() == 0
    pids = Counter(Job.objects.filter(status="done").values_list("result", flat=True))
    assert sum(pids.values()) == 23
    assert max(pids.values()) <= 5
    assert set(Job.objects.values_list("attempts", flat=True)) == {1}
    assert not worker.named("job_crashed")


def test_a_child_that_leaks_is_replaced_between_jobs(queue_db, worker_process):
    fill(9, "res.leak", {"mebibytes": 60})
    worker = worker_process("--max-memory", "130", "--drain")
    assert worker.wait() == 0
    pids = Counter(Job.objects.filter(status="done").values_list("result", flat=True))
    assert sum(pids.values()) == 9
    assert len(pids) >= 4 and max(pids.values()) <= 2
    assert set(Job.objects.values_list("attempts", "crashes")) == {(1, 0)}
    assert JobAttempt.objects.filter(outcome="completed").count() == 9


def test_a_solo_worker_that_leaks_ends_after_the_job(queue_db, worker_process):
    fill(9, "res.leak", {"mebibytes": 60})
    worker = worker_process("--max-memory", "130", "--solo")
    assert worker.wait() == 0
    done = Job.objects.filter(status="done").count()
    assert 1 <= done <= 2
    assert Job.objects.filter(status="ready", attempts=0).count() == 9 - done


def test_children_that_cannot_start_are_fatal(queue_db, worker_process):
    """Three tries and no more; the reason is on stderr."""
    job_id = enqueue("proc.note").id
    broken = {"DJANGO_SETTINGS_MODULE": "tests.process.broken_children"}
    began = time.monotonic()
    worker = worker_process("--processes", "2", env=broken)
    assert worker.wait() == 1
    assert worker.wait_event("worker_fatal")["error"] == "CrewFailed"
    assert not worker.named("job_claimed")
    assert (rows.job(job_id).status, rows.job(job_id).attempts) == ("ready", 0)
    text = worker.log()
    assert "these settings break in children" in text
    # Each failed start writes one traceback; the forkserver one more.
    assert text.count("Traceback (most recent call last)") <= 8
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("how", ["soon", "receiver"])
def test_children_that_die_before_a_handler_are_fatal(queue_db, worker_process, how):
    """By themselves, again and again: the worker ends instead of making children for ever."""
    job_id = enqueue("proc.note", run_after=None if how == "receiver" else LATER).id
    broken = {"DJANGO_SETTINGS_MODULE": "tests.process.broken_children", "PROCESS_TEST_BREAK": how}
    worker = worker_process("--processes", "2", env=broken)
    assert worker.wait() == 1
    assert worker.wait_event("worker_fatal")["error"] == "CrewFailed"
    assert rows.job(job_id).status == "ready"  # given back, not left to its lease
    assert (rows.job(job_id).attempts, rows.outcomes(job_id)) == (0, [])


def test_children_that_are_killed_now_and_then_are_replaced(queue_db, worker_process):
    """Four times, with nothing to do in between: they were sound."""
    worker = worker_process()
    for _ in range(4):
        (child,) = wait_until(lambda: [one for one in children_of(worker) if not one.gone])
        began = time.monotonic()
        wait_until(lambda began=began: time.monotonic() - began > 0.7)
        child.signal(signal.SIGKILL)
        wait_until(lambda child=child: child.gone)
    worker.wait_event("job_completed", job_id=enqueue("proc.note").id)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
