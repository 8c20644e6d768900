"""The order of claims: first in, first out; priorities strict; queues as a worker was told."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from django_leasequeue import enqueue, pause, resume
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, run
from tests.core.interleave import at_statement

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


def claimed_ids(connection, count, **options):
    return [claim_one(connection, **options).job_id for _ in range(count)]


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_first_in_first_out(connection, limit):
    ids = [enqueue("t").id for _ in range(7)]
    run(connection, "UPDATE leasequeue_job SET available_at = created_at")
    found = []
    while jobs := claim_jobs(connection, limit):
        found += [job.job_id for job in jobs]
    assert found == ids


def test_the_longest_due_first_whoever_was_enqueued_first(connection):
    wishes = [3, 1, 2, 0]
    made = {n: enqueue("t", run_after=LONG_AGO + timedelta(seconds=n)).id for n in wishes}
    assert claimed_ids(connection, 4) == [made[n] for n in range(4)]


def test_one_moment_goes_by_id(connection):
    ids = [enqueue("t", run_after=LONG_AGO).id for _ in range(4)]
    assert claimed_ids(connection, 4) == ids


@pytest.mark.parametrize("queues", ["default", "*"])
def test_priority_is_strict(connection, queues):
    made = {}
    for priority in (0, -100, 100, 5, -5):
        made[priority] = [enqueue("t", priority=priority).id for _ in range(2)]
    expected = [job_id for priority in sorted(made, reverse=True) for job_id in made[priority]]
    lanes = Lanes(tuple(queues.split(",")))
    assert claimed_ids(connection, 10, lanes=lanes) == expected


def test_queues_are_strict_in_the_order_given(connection):
    made = {name: [enqueue("t", queue=name).id for _ in range(2)] for name in ("a", "b", "c")}
    lanes = Lanes(("c", "a"))
    assert claimed_ids(connection, 4, lanes=lanes) == made["c"] + made["a"]
    assert claim_jobs(connection, 5, lanes=lanes) == []


def test_a_better_queue_is_served_as_soon_as_it_has_something(connection, lane_clock):
    lanes = Lanes(("good", "other"))
    others = [enqueue("t", queue="other").id for _ in range(3)]
    assert claimed_ids(connection, 1, lanes=lanes) == others[:1]
    good = enqueue("t", queue="good", priority=7)
    lane_clock.now += 1
    assert claimed_ids(connection, 2, lanes=lanes) == [good.id, others[1]]


def test_a_better_priority_is_served_within_the_cache(connection, lane_clock):
    lanes = Lanes(("default",))
    low = [enqueue("t").id for _ in range(3)]
    assert claimed_ids(connection, 1, lanes=lanes) == low[:1]
    high = enqueue("t", priority=9)
    lane_clock.now += 1
    assert claimed_ids(connection, 2, lanes=lanes) == [high.id, low[1]]


def test_a_lane_that_was_in_use_is_served_at_once(connection, lane_clock):
    """A worker that idles finds the next job of a lane it knows at its next poll."""
    lanes = Lanes(("default",))
    for _ in range(3):
        made = enqueue("t", priority=3)
        assert claimed_ids(connection, 1, lanes=lanes) == [made.id]
        assert claim_jobs(connection, 5, lanes=lanes) == []


def test_all_queues_take_turns(connection):
    for _ in range(4):
        for name in ("a", "b", "c"):
            enqueue("t", queue=name)
    lanes = Lanes(("*",))
    turns = [claim_one(connection, lanes=lanes).queue for _ in range(12)]
    assert all(set(turns[n : n + 3]) == {"a", "b", "c"} for n in range(0, 12, 3))


def test_turns_are_fair_among_many_queues_without_jobs(connection):
    """What was done lies in fifteen queues; the two with jobs share the worker all the same."""
    for n in range(15):
        enqueue("t", queue=f"q{n:02}")
    for job in [claim_one(connection) for _ in range(15)]:
        settle(connection, [Ending(job.lease, Outcome(End.COMPLETED))])
    for _ in range(20):
        enqueue("t", queue="q03")
        enqueue("t", queue="q04")
    lanes = Lanes(("*",))
    turns = Counter(claim_one(connection, lanes=lanes).queue for _ in range(20))
    assert turns == {"q03": 10, "q04": 10}


# Pauses ------------------------------------------------------------------------------------------


def test_finding_very_many_queues_takes_a_quarter_of_the_time_at_most(connection, lane_clock):
    """Two seconds for thousands of queues: jobs are claimed for six before it is done again."""
    for number in range(30):
        enqueue("t", queue=f"q{number}")
    lanes = Lanes(("*",))
    started = []

    def pass_time() -> None:
        started.append(lane_clock.now)
        lane_clock.now += 2

    for _ in range(20):
        with at_statement(connection, "leasequeue:lanes", pass_time):
            assert claim_one(connection, lanes=lanes)
        lane_clock.now += 0.5
    assert started == [1000.0, 1008.0]


@pytest.mark.parametrize("queues", ["default,other", "*"])
def test_a_pause_acts_within_a_second(connection, lane_clock, queues):
    lanes = Lanes(tuple(queues.split(",")))
    for _ in range(4):
        enqueue("t")
    claim_one(connection, lanes=lanes)
    assert pause("default", by="ann", reason="deploy")
    lane_clock.now += 1
    assert claim_jobs(connection, 5, lanes=lanes) == []
    enqueue("t", priority=50)
    other = enqueue("t", queue="other")
    for _ in range(5):
        lane_clock.now += 0.5
        assert [job.job_id for job in claim_jobs(connection, 5, lanes=lanes)] in ([other.id], [])
    assert resume("default")
    lane_clock.now += 1
    assert claim_one(connection, lanes=lanes).queue == "default"


def test_a_paused_queue_that_a_worker_has_never_seen(connection):
    pause("default")
    enqueue("t")
    assert claim_jobs(connection, 5, queues="default") == []
    assert claim_jobs(connection, 5, queues="*") == []


def test_pause_and_resume_tell_what_changed():
    assert (pause("q"), pause("q")) == (True, False)
    assert (resume("q"), resume("q")) == (True, False)
    assert resume("never seen") is False
