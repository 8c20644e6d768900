"""The board and the recent past: the gauges' figures in a fixed number of statements."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from django_leasequeue import enqueue, enqueue_many, pause
from django_leasequeue.core import board, dives, recent
from django_leasequeue.core.board import Overall, read_board
from django_leasequeue.core.clock import UtcNow, read_now
from django_leasequeue.core.dives import queue_names, ready_priorities
from django_leasequeue.core.gauges import read_gauges
from django_leasequeue.core.recent import BUCKETS, Bucket, read_finished, read_recent
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import expire, run, running
from tests.core.plans import explained
from tests.statements import count_statements

MINUTE = timedelta(minutes=1)


def test_an_empty_table(connection):
    found = read_board(connection)
    assert (found.queues, found.overall) == ((), Overall(0, 0, 0, 0, 0, 0))
    assert found.complete


@pytest.fixture
def filled(connection):
    dead, parked, expired, _held = (running(connection, 1, queue="a")[0] for _ in range(4))
    settle(connection, [Ending(dead.lease, Outcome(End.REJECTED, bury=True))])
    settle(connection, [Ending(parked.lease, Outcome(End.PARKED, started=False))])
    expire(connection, expired.job_id)
    for priority in (5, 0, -5):
        enqueue("arranged", queue="a", priority=priority)
    enqueue("arranged", queue="a", delay=3600, priority=-7)
    enqueue("arranged", queue="b", delay=3600)
    enqueue("arranged", queue="ü")
    enqueue("arranged", queue="Ü")
    old = enqueue("arranged", queue="c", priority=-5).id
    Job.objects.filter(pk=old).update(available_at=UtcNow() - 2 * MINUTE)
    enqueue("arranged", queue="c")
    pause("b")
    yield
    run(connection, "UPDATE leasequeue_job SET status = 'done' WHERE status = 'reserved'")


def test_it_says_what_the_gauges_say(connection, filled):
    found, expected = read_board(connection), read_gauges(connection)
    strip = [one._replace(oldest_ready=0.0) for one in found.queues]
    assert strip == sorted(one._replace(oldest_ready=0.0) for one in expected.queues)
    ages = {one.queue: one.oldest_ready for one in expected.queues}
    for one in found.queues:
        assert one.oldest_ready == pytest.approx(ages[one.queue], abs=2)
    assert {one.queue for one in found.queues if one.paused} == {"b"}
    assert found.overall == Overall(2, 1, 1, pending_burials=1, expired_leases=1, paused=1)
    assert found.complete
    assert 120 <= next(one for one in found.queues if one.queue == "c").oldest_ready < 240


def test_statements_do_not_grow_with_the_queues(connection):
    for number in range(20):
        enqueue("arranged", queue=f"q{number:02}", priority=number % 3)
    read_board(connection)  # so that names of other tests are forgotten
    with count_statements(connection) as statements:
        assert len(read_board(connection).queues) == 20
    assert len(statements) == 5
    enqueue("arranged", queue="q99")
    found = read_board(connection)
    assert len(found.queues) == 20
    assert not found.complete
    assert "q99" not in {one.queue for one in found.queues}
    assert found.overall.dead == 0
    Job.objects.filter(queue_name="q99").update(status="dead")
    pause("q99")
    assert read_board(connection).overall == Overall(0, 1, 0, 0, 0, paused=1)
    assert [one.queue for one in read_board(connection, after="q19").queues] == ["q99"]


def test_queues_that_no_new_job_tells_of(connection, monkeypatch):
    """They are found by their place, a few at a time, and then they are known."""
    monkeypatch.setattr(dives, "_likely", {})
    monkeypatch.setattr(dives, "_NEWEST", 1)
    monkeypatch.setattr(dives, "_ROUNDS", 3)
    names = [f"q{number}" for number in range(7)]
    for name in names:
        enqueue("arranged", queue=name)
    assert queue_names(connection, "", 9) == (names[:3], False)
    assert queue_names(connection, "", 9) == (names[:6], False)
    assert queue_names(connection, "", 9) == (names, True)
    assert queue_names(connection, "", 7) == (names, True)
    assert queue_names(connection, "", 6) == (names[:6], False)
    assert queue_names(connection, "q4", 9) == (["q5", "q6"], True)
    Job.objects.exclude(queue_name="q6").delete()
    assert queue_names(connection, "", 9) == (["q6"], True)
    assert dives._likely[connection.alias] == {"q6"}


def test_priorities_from_both_ends(connection):
    for priority in (-100, -3, 0, 1, 7, 100):
        enqueue("arranged", queue="a", priority=priority)
    enqueue("arranged", queue="b", priority=4)
    found, complete = ready_priorities(connection, ["a", "b", "none"])
    assert found == {"a": {-100, -3, 0, 1, 7, 100}, "b": {4}, "none": set()}
    assert complete
    for priority in range(20, 30):
        enqueue("arranged", queue="a", priority=priority)
    assert ready_priorities(connection, ["a"])[1] is False


def test_counts_end_at_the_cap(connection, monkeypatch):
    monkeypatch.setattr(board, "_LEAST_CAP", 3)
    monkeypatch.setattr(board, "_MOST_COUNTED", 7)
    for priority in (1, 2):
        enqueue_many([("arranged", {}, {"queue": "a", "priority": priority})] * 2)
    monkeypatch.setattr(board, "CAP", 3)
    found = read_board(connection)
    assert (found.queues[0].ready, found.cap) == (3, 3)
    monkeypatch.setattr(board, "CAP", 5)
    found = read_board(connection)
    assert (found.queues[0].ready, found.cap) == (4, 5)
    enqueue("arranged", queue="b")
    assert read_board(connection).cap == 3  # two queues share what is counted


def test_plans(connection: Any, alias: str) -> None:
    """Nothing groups, sorts distinct or counts a whole table."""
    enqueue("arranged", queue="a")
    with explained(connections[alias]) as plans:
        read_board(connections[alias])
        read_finished(connections[alias], read_now(connections[alias]))
    assert plans
    assert not [plan for plan in plans if "GROUP BY" in plan.sql or "DISTINCT" in plan.sql]


def finished(status: str, ago: timedelta, count: int = 1) -> None:
    ids = [job.pk for job in enqueue_many([("arranged", {}, {})] * count)]
    Job.objects.filter(pk__in=ids).update(status=status, finished_at=UtcNow() - ago)


def test_what_finished_when(connection, monkeypatch):
    monkeypatch.setattr(recent, "BUCKET_CAP", 3)
    finished("done", timedelta(0), 2)
    finished("dead", timedelta(0), 1)
    finished("done", 57 * MINUTE, 5)
    finished("dead", 90 * MINUTE)
    finished("cancelled", MINUTE)
    with count_statements(connection) as statements:
        buckets = read_finished(connection, read_now(connection))
    assert len(statements) == 2
    assert len(buckets) == BUCKETS
    assert (buckets[0], buckets[-1]) == (Bucket(3, 0), Bucket(2, 1))
    assert set(buckets[1:-1]) == {Bucket()}


def test_those_whose_burial_is_to_come_have_died(connection, monkeypatch):
    monkeypatch.setattr(recent, "BUCKET_CAP", 3)
    finished("dead", 57 * MINUTE, 2)
    finished("dead", 90 * MINUTE)
    Job.objects.update(lease_until=UtcNow() + MINUTE)
    finished("dead", 57 * MINUTE)
    buckets = read_finished(connection, read_now(connection))
    assert buckets == [Bucket(0, 3), *[Bucket()] * (BUCKETS - 1)]
    with explained(connection) as plans:
        finished("dead", 57 * MINUTE)
        buckets = read_finished(connection, read_now(connection))
    assert buckets[0] == Bucket(0, 3)
    (plan,) = (plan for plan in plans if plan.tag == "recent")
    assert plan.indexes - {""} == {"leasequeue_job_recover"}, str(plan)  # a count has no name


def attempt(queue: str, outcome: End, ago: timedelta) -> None:
    JobAttempt.objects.create(
        job=enqueue("arranged", queue=queue),
        number=1,
        token=b"t" * 16,
        outcome=outcome.value,
        finished_at=UtcNow() - ago,
    )


def test_attempts_by_queue(connection):
    now = read_now(connection)
    assert read_recent(connection, now).queues == {}
    attempt("old", End.COMPLETED, 90 * MINUTE)
    attempt("a", End.FAILED, 57 * MINUTE)
    for end in (End.COMPLETED, End.SKIPPED, End.CRASHED, End.SNOOZED, End.CANCELLED):
        attempt("a", end, MINUTE)
    attempt("b", End.EXPIRED, MINUTE)
    JobAttempt.objects.create(job_id=10**9, number=1, token=b"t" * 16, outcome="failed")
    with count_statements(connection) as statements:
        found = read_recent(connection, now)
    assert len(statements) == 1
    assert set(found.queues) == {"a", "b"}
    assert found.queues["a"][0] == Bucket(0, 1)
    assert found.queues["a"][-1] == Bucket(2, 1)
    assert found.queues["b"] == [Bucket()] * (BUCKETS - 1) + [Bucket(0, 1)]
    assert found.until - found.since == recent.SPAN


def test_a_full_sample_covers_less_time(connection, monkeypatch):
    monkeypatch.setattr(recent, "_SAMPLE", 2)
    for minutes in (50, 20, 10):
        attempt("a", End.COMPLETED, minutes * MINUTE)
    found = read_recent(connection, read_now(connection))
    assert 19 * MINUTE < found.until - found.since < 22 * MINUTE
    assert (found.queues["a"][0].well, sum(each.well for each in found.queues["a"])) == (1, 2)
