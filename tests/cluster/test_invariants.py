"""Writers on all nodes, a majority that is away, a writer that is killed: nothing lost or doubled.

In this order, for a node is dead afterwards. Each effect is a business row, and no unique key would
stop a second one.
"""

from __future__ import annotations

import logging
import signal
import time
from collections import Counter

import pytest
from django.db import DatabaseError, InterfaceError, connection, connections
from django.db.models import Count

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt, Schedule
from reports.models import GeneratedReport
from tests.waiting import wait_until

JOBS = 300
#: Of these, how many are there when the writer is killed.
BEFORE = 150
LEASE = "10"
SECONDS = 75
ENDS = {"completed", "failed", "crashed", "expired", "released"}

logger = logging.getLogger(__name__)
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def _whole(nodes) -> None:
    wait_until(lambda: all(node.sees() == len(nodes) for node in nodes), timeout=60)


def done() -> int:
    return Job.objects.filter(status="done").count()


def took_part() -> int:
    """Return how many workers have ended an attempt."""
    return JobAttempt.objects.order_by().values("worker").distinct().count()


def steadily(ask):
    """Return what it answers, asked again while the cluster is between two writers."""
    for _ in range(600):
        try:
            return ask()
        except (DatabaseError, InterfaceError):
            connection.close()
            time.sleep(0.05)
    raise AssertionError("the cluster never came back")


def steadily_or_none(ask):
    """Return what it answers, None if it does not."""
    try:
        return ask()
    except (DatabaseError, InterfaceError):
        connection.close()
        return None


def stop(workers) -> None:
    for worker in workers:
        worker.signal(signal.SIGTERM)
    for worker in workers:
        assert worker.wait() == 0


def check(jobs: int) -> Counter[str]:
    """Check that all is done, and every effect there once; return the attempts by outcome."""
    assert not Job.objects.exclude(status="done").exists()
    assert Job.objects.count() == jobs
    effects = GeneratedReport.objects.values("tenant_id").annotate(count=Count("id"))
    assert effects.count() == jobs
    assert not effects.exclude(count=1).exists()
    ends = dict(JobAttempt.objects.values_list("outcome").annotate(Count("id")).order_by())
    assert ends["completed"] == jobs
    assert set(ends) <= ENDS
    by = JobAttempt.objects.filter(outcome="completed").values_list("job_id", "number")
    kept = GeneratedReport.objects.values_list("tenant_id", "result_json")
    assert {f"job-{job}": {"claim": number} for job, number in by} == dict(kept)
    return Counter(ends)


def test_writers_on_every_node(queue_db, nodes, on_node, worker_process):
    """Locks are local to a node: two claim the same row, and the COMMIT of one is refused."""
    if nodes[0].kind == "group-replication":
        nodes[0].ask("SELECT group_replication_switch_to_multi_primary_mode()")
    Schedule.objects.create(name="each second", job_type="outages.effect", every=1)
    workers = [
        worker_process("--processes", "1", "--lease", LEASE, env=on_node(number))
        for number in range(len(nodes))
    ]
    wait_until(Job.objects.exists, timeout=30)  # of the schedule: one of them works
    for worker in workers:
        worker.wait_event("worker_started")
    began = time.monotonic()
    jobs = 0
    # One worker may be done with a batch before the others have looked: more, until all had some.
    while jobs < JOBS or took_part() < len(nodes):
        assert time.monotonic() - began < SECONDS, f"{took_part()} workers took part"
        enqueue_many([("outages.effect", {}, {})] * JOBS)
        jobs += JOBS
        wait_until(lambda jobs=jobs: done() >= jobs, timeout=SECONDS)
    took = time.monotonic() - began
    wait_until(lambda: Job.objects.filter(schedule="each second").count() > 1, timeout=SECONDS)
    Schedule.objects.update(enabled=False)
    wait_until(lambda: not Job.objects.exclude(status="done").exists(), timeout=SECONDS)
    stop(workers)
    ticked = Job.objects.filter(schedule="each second").values_list("tick_at", flat=True)
    assert len(ticked) == len(set(ticked)) >= 2
    ends = check(jobs + len(ticked))
    by = Counter(JobAttempt.objects.values_list("worker", flat=True))
    logger.info("%s: %d jobs in %.1f s, %s, by worker %s", nodes[0].kind, jobs, took, ends, by)


def test_one_key_from_two_nodes_is_one_job(queue_db, nodes):
    """The COMMIT of one is refused, or it waits; whoever repeats it gets the other's job."""
    for number, node in enumerate(nodes[1:], 1):
        settings = {**connections.settings["default"], "PORT": str(node.port)}
        connections.settings[f"node{number}"] = settings
    try:
        ids = [
            {enqueue("t", {}, key=f"k{n}", using=alias).id for alias in ("node1", "node2")}
            for n in range(20)
        ]
    finally:
        for alias in ("node1", "node2"):
            connections[alias].close()
            del connections[alias], connections.settings[alias]
    assert [len(pair) for pair in ids] == [1] * 20


def test_the_majority_is_away(queue_db, nodes, router, worker_process):
    """The writer refuses, or waits, as long as it is alone: so do the workers, and go on then."""
    writer = router.writer
    enqueue_many([("outages.effect", {}, {})] * JOBS)
    workers = [worker_process("--processes", "2", "--lease", LEASE) for _ in range(2)]
    wait_until(lambda: steadily(done) >= JOBS // 4, timeout=SECONDS)
    others = [node for node in nodes if node is not writer]
    try:
        for node in others:
            node.pause()
        wait_until(writer.is_alone, timeout=30)
        assert steadily_or_none(done) != JOBS
    finally:
        for node in others:
            node.resume()
    wait_until(lambda: steadily(done) == JOBS, timeout=SECONDS)
    stop(workers)
    logger.info("%s: %s", nodes[0].kind, check(JOBS))


def test_the_writer_is_killed(queue_db, nodes, router, worker_process):
    """What was acknowledged is there, the workers find the next writer, the rest is done by it."""
    if nodes[0].kind == "group-replication":
        ((own,),) = nodes[0].ask("SELECT @@server_uuid")
        nodes[0].ask(f"SELECT group_replication_switch_to_single_primary_mode('{own}')")
        only = [True, False, False]
        wait_until(lambda: [node.is_writable() for node in nodes] == only, timeout=30)
        wait_until(lambda: router.writer is nodes[0], timeout=30)
    workers = [worker_process("--processes", "2", "--lease", LEASE) for _ in range(2)]
    acknowledged, killed, away, victim = set(), 0.0, 0.0, None
    for number in range(JOBS):
        if number == BEFORE:
            wait_until(lambda: steadily(done) >= BEFORE // 3, timeout=SECONDS)
            victim = router.writer
            victim.kill()
            killed = time.monotonic()
        acknowledged.add(steadily(lambda n=number: enqueue("outages.effect", key=f"n{n}").id))
        if killed and not away:
            away = time.monotonic() - killed
    wait_until(lambda: steadily(done) == JOBS, timeout=SECONDS)
    took = time.monotonic() - killed
    stop(workers)
    ends = check(JOBS)
    assert set(Job.objects.values_list("id", flat=True)) == acknowledged
    assert router.writer is not victim
    kind, lost = nodes[0].kind, sum(len(worker.named("database_lost")) for worker in workers)
    words = "%s: writes away for %.1f s, all done after %.1f s, %d outages, %s"
    logger.info(words, kind, away, took, lost, ends)
