"""What a worker uses over thousands of jobs, and what jobs leave to each other: nothing.

For longer runs: `make soak`.
"""

from __future__ import annotations

import signal
from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from reports.models import GeneratedReport
from tests.faults.tree import process, stop
from tests.process import rows
from tests.process.sessions import other_sessions
from tests.waiting import wait_until

MIB = 2**20


def fill(count, job_type, payload=None):
    return [one.id for one in enqueue_many([(job_type, payload or {}, {})] * count)]


def result(job_id: int) -> Any:
    return rows.job(job_id).result


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_connections_are_bounded_by_the_threads(queue_db, worker_process):
    """G3: one for each thread, one for claims, one for renewals."""
    jobs = fill(1500, "proc.report")
    worker = worker_process("--threads", "8")
    most = 0

    def ended():
        nonlocal most
        most = max(most, len(other_sessions(queue_db)))
        return worker.named("job_completed", job_id=jobs[-1])

    wait_until(ended, timeout=60)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert 8 < most <= 8 + 3
    assert Job.objects.filter(status="done").count() == 1500


def test_debug_keeps_no_statements(queue_db, worker_process):
    """G4: neither a child nor control grows by what DEBUG would keep, kilobytes for each job."""
    jobs = fill(4000, "res.memory")  # of which some hundreds are held at once
    worker = worker_process("--drain", env={"DJANGO_DEBUG": "1"})
    assert worker.wait(90) == 0
    looks = [result(jobs[at]) for at in (1200, 2600, -1)]
    assert max(look["kept"] for look in looks) < 10
    assert least_growth(looks, "child") < 2 * MIB
    assert least_growth(looks, "control") < MIB


def least_growth(looks, part):
    """Return by how much a process grew from one look to the next, at least: no leak rests."""
    return min(after[part] - before[part] for before, after in pairwise(looks))


WAYS = ("language", "variables", "session", "transaction", "closed", "raises")


def test_a_job_leaves_nothing_to_the_next(queue_db, worker_process):
    """C6, and language, time zone, context variables, decimal context: all in one child."""
    untouched = enqueue("res.state").id
    with transaction.atomic():
        pairs = {
            way: (
                enqueue("res.dirty", {"way": way}, max_attempts=1).id,
                enqueue("res.state").id,
                enqueue("res.pid").id,
            )
            for way in WAYS
        }
    worker = worker_process("--drain")
    assert worker.wait() == 0
    expected = result(untouched)
    assert (expected["autocommit"], expected["rows"]) == (True, 0)
    for way, (dirty, after, _pid) in pairs.items():
        assert result(after) == expected, way
        clean = way in ("language", "variables", "session")
        assert rows.job(dirty).status == ("done" if clean else "dead"), way
    assert not GeneratedReport.objects.exists()
    pids = {result(pid) for _dirty, _after, pid in pairs.values()}
    assert len(pids) == 1
    assert result(pairs["session"][0]) in pids


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_what_ends_together_is_settled_together(queue_db, worker_process, gate):
    """Control stands still while a child runs on: what it finds afterwards is one transaction."""
    worker = worker_process()
    worker.wait_event("job_completed", job_id=fill(3, "proc.note")[-1])
    with transaction.atomic():
        first = enqueue("proc.wait", {"gate": str(gate("a"))}).id
        notes = fill(6, "proc.note")
        last = enqueue("proc.report").id
    gate("a").wait("started")
    stop([process(worker.pid)])
    gate("a").say("go")
    wait_until(lambda: rows.job(last).status == "done")
    assert rows.job(first).status == "done"
    assert set(Job.objects.filter(pk__in=notes).values_list("status", flat=True)) == {"reserved"}
    worker.signal(signal.SIGCONT)
    worker.wait_event("job_completed", job_id=notes[-1])
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    # Equal outcomes are written by one statement, which has one time.
    ended = JobAttempt.objects.filter(job_id__in=notes).values_list("finished_at", flat=True)
    assert (len(ended), len(set(ended))) == (len(notes), 1)
