"""Gauges: the figures of each queue; what they cost is seen in tests/field/test_big_table.py."""

from __future__ import annotations

from typing import Any

from django.db import connections

from django_leasequeue import enqueue, pause
from django_leasequeue.core import gauges
from django_leasequeue.core.gauges import Gauges, QueueGauges, read_gauges
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import expire, run, running
from tests.core.plans import explained


def queue_of(found: Gauges, name: str) -> QueueGauges:
    (queue,) = [one for one in found.queues if one.queue == name]
    return queue


def test_an_empty_table(connection):
    assert read_gauges(connection) == Gauges((), 0, 0, complete=True)
    assert read_gauges(connection).oldest_ready == 0.0


def test_the_figures_of_each_queue(connection):
    dead, parked, expired, held = (running(connection, 1, queue="a")[0] for _ in range(4))
    settle(connection, [Ending(dead.lease, Outcome(End.REJECTED, bury=True))])
    settle(connection, [Ending(parked.lease, Outcome(End.PARKED, started=False))])
    expire(connection, expired.job_id)
    for priority in (5, 0, -5):
        enqueue("arranged", queue="a", priority=priority)
    enqueue("arranged", queue="a", delay=3600)
    enqueue("arranged", queue="b", delay=3600)
    found = read_gauges(connection)
    a, b = queue_of(found, "a"), queue_of(found, "b")
    assert (a.ready, a.scheduled, a.reserved, a.dead, a.parked) == (3, 1, 2, 1, 1)
    assert (b.ready, b.scheduled, b.reserved, b.dead, b.parked) == (0, 1, 0, 0, 0)
    assert (found.pending_burials, found.expired_leases, found.complete) == (1, 1, True)
    settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    run(connection, "UPDATE leasequeue_job SET status = 'done' WHERE status = 'reserved'")


def test_the_oldest_due_job_of_any_priority(connection):
    enqueue("arranged", queue="a", priority=5)
    old = enqueue("arranged", queue="a", priority=-5).id
    enqueue("arranged", queue="b", delay=3600)
    back = {
        "mysql": "available_at - INTERVAL 100 SECOND",
        "postgresql": "available_at - interval '100 seconds'",
        "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', available_at, '-100 seconds')",
    }
    run(
        connection,
        f"UPDATE leasequeue_job SET available_at = {back[connection.vendor]} WHERE id = {old}",
    )
    found = read_gauges(connection)
    assert 100 <= queue_of(found, "a").oldest_ready < 220
    assert queue_of(found, "b").oldest_ready == 0
    assert found.oldest_ready == queue_of(found, "a").oldest_ready
    pause("a")
    assert queue_of(read_gauges(connection), "a").paused
    assert read_gauges(connection).oldest_ready == 0


def test_counts_end_at_the_cap_and_queues_at_theirs(connection, monkeypatch):
    monkeypatch.setattr(gauges, "CAP", 3)
    for priority in (1, 2):
        for _ in range(2):
            enqueue("arranged", queue="a", priority=priority)
    for queue in ("b", "c"):
        enqueue("arranged", queue=queue)
    found = read_gauges(connection, most=2)
    assert [one.queue for one in found.queues] == ["a", "b"]
    assert queue_of(found, "a").ready == 3
    assert not found.complete


def test_no_further_queue_when_time_is_up(connection):
    enqueue("arranged", queue="a")
    found = read_gauges(connection, seconds=0)
    assert (found.queues, found.complete) == ((), False)


def test_no_statement_groups(connection: Any, alias: str) -> None:
    enqueue("arranged", queue="a")
    with explained(connections[alias]) as plans:
        read_gauges(connections[alias])
    assert plans
    assert not [plan for plan in plans if "GROUP BY" in plan.sql or "DISTINCT" in plan.sql]
