"""Queues are remembered, and new ones are found between them."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_leasequeue import enqueue, pause
from django_leasequeue.core.ready_queues import ReadyQueues, priorities_of
from django_leasequeue.models import Job
from tests.statements import count_statements

NAMES = st.lists(st.sampled_from([f"q{n:02}" for n in range(60)]), unique=True, max_size=50)


@settings(
    deadline=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=NAMES, second=NAMES)
def test_what_is_read_is_what_there_is(connection, first, second):
    Job.objects.all().delete()
    queues = ReadyQueues()
    for names in (first, second):
        Job.objects.bulk_create(
            Job(queue_name=name, job_type="t", priority=int(name[1:]) % 3) for name in names
        )
        there = {*Job.objects.values_list("queue_name", flat=True)}
        assert queues.read(connection) == [(name, [int(name[1:]) % 3]) for name in sorted(there)]


def test_a_queue_between_two_known_ones_is_read_at_once(connection):
    queues = ReadyQueues()
    for name in ("b", "d", "a", "e", "c"):
        enqueue("t", queue=name)
        assert name in dict(queues.read(connection))


def test_one_statement_for_twenty_idle_queues(connection):
    Job.objects.bulk_create(
        Job(queue_name=f"q{n:02}", job_type="t", status="done") for n in range(41)
    )
    queues = ReadyQueues()
    queues.read(connection)
    with count_statements(connection) as statements:
        found = queues.read(connection)
    assert found == [(f"q{n:02}", []) for n in range(41)]
    assert len(statements) == 3


def test_what_was_emptied_has_nothing_ready(connection):
    enqueue("t", queue="gone")
    queues = ReadyQueues()
    assert queues.read(connection) == [("gone", [0])]
    Job.objects.all().delete()
    assert queues.read(connection) == [("gone", [])]


def test_paused_queues_are_left_out_and_priorities_come_largest_first(connection):
    for queue, priority in (("a", 1), ("a", 7), ("a", -3), ("held", 0), ("z", 0)):
        enqueue("t", queue=queue, priority=priority)
    pause("held")
    expected = [("a", [7, 1, -3]), ("z", [0])]
    assert ReadyQueues().read(connection) == expected
    assert priorities_of(connection, ["z", "held", "none", "a"]) == [
        ("z", [0]),
        ("none", []),
        ("a", [7, 1, -3]),
    ]
