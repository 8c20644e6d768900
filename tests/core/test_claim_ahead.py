"""Claim-ahead: jobs taken to wait in a worker are those that a lost worker would not harm."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.lanes import Lanes
from tests.core.arrange import claim_jobs, job, snapshot, write
from tests.core.interleave import at_statement
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

MUST_NOT_WAIT = {
    "last attempt": {"attempts": 4},
    "its only attempt": {"max_attempts": 1},
    "crashed once": {"crashes": 1},
}


@pytest.fixture
def lanes(lane_clock) -> Lanes:
    """A worker's lanes, whose clock stands still: what the mark hides stays hidden."""
    return Lanes(("default",))


def made(count: int) -> list[int]:
    return [enqueue("t").id for _ in range(count)]


def ids(jobs) -> list[int]:
    return [held.job_id for held in jobs]


@pytest.mark.parametrize(("limit", "ahead"), [(1, 0), (1, 3), (3, 1), (0, 4), (2, 50)])
def test_as_many_as_both_together_in_order(connection, lanes, limit, ahead):
    jobs = made(7)
    held = claim_jobs(connection, limit, ahead=ahead, lanes=lanes)
    assert ids(held) == jobs[: limit + ahead]
    assert len({each.lease.token for each in held}) == 1
    assert ids(claim_jobs(connection, 9, lanes=lanes)) == jobs[limit + ahead :]


def test_nothing_asked_for_asks_nothing(connection, lanes):
    made(1)
    with count_statements(connection) as statements:
        assert claim_jobs(connection, 0, lanes=lanes) == []
    assert statements == []


@pytest.mark.parametrize("columns", MUST_NOT_WAIT.values(), ids=MUST_NOT_WAIT)
def test_it_ends_before_a_job_that_must_not_wait(connection, lanes, columns):
    jobs = made(6)
    write(connection, jobs[3], **columns)
    assert ids(claim_jobs(connection, 1, ahead=9, lanes=lanes)) == jobs[:3]
    assert job(jobs[3]).status == "ready"
    # The mark has not passed it, and it is the next one's first.
    assert ids(claim_jobs(connection, 1, ahead=9, lanes=lanes)) == jobs[3:]


@pytest.mark.parametrize("columns", MUST_NOT_WAIT.values(), ids=MUST_NOT_WAIT)
def test_a_job_that_must_not_wait_is_claimed_to_run(connection, lanes, columns):
    jobs = made(4)
    for job_id in jobs[:2]:
        write(connection, job_id, **columns)
    assert ids(claim_jobs(connection, 2, ahead=1, lanes=lanes)) == jobs[:3]


def test_one_attempt_more_is_left(connection, lanes):
    jobs = made(2)
    write(connection, jobs[1], attempts=3)
    assert ids(claim_jobs(connection, 1, ahead=1, lanes=lanes)) == jobs


@pytest.mark.parametrize("columns", MUST_NOT_WAIT.values(), ids=MUST_NOT_WAIT)
def test_nothing_overtakes_a_job_that_must_not_wait(connection, lanes, columns):
    first, low = enqueue("t", priority=1).id, enqueue("t").id
    write(connection, first, **columns)
    before = snapshot(connection)
    for _ in range(2):
        assert claim_jobs(connection, 0, ahead=5, lanes=lanes) == []
    assert snapshot(connection) == before
    assert ids(claim_jobs(connection, 1, lanes=lanes)) == [first]
    assert ids(claim_jobs(connection, 1, lanes=lanes)) == [low]


def test_what_comes_to_nothing_on_the_way_is_ended(connection, lanes):
    """Those behind the job that stops it are not met, and left alone."""
    used_up, expired, good, last, behind = made(5)
    for job_id in (used_up, behind):
        write(connection, job_id, attempts=5)
    write(connection, expired, expires_at="2001-01-01 00:00:00.000000")
    write(connection, last, attempts=4)
    assert ids(claim_jobs(connection, 0, ahead=9, lanes=lanes)) == [good]
    statuses = [job(job_id).status for job_id in (used_up, expired, good, last, behind)]
    assert statuses == ["dead", "cancelled", "reserved", "ready", "ready"]
    assert ids(claim_jobs(connection, 1, ahead=9, lanes=lanes)) == [last]
    assert job(behind).status == "dead"


def test_equal_times_hide_nobody(connection, lanes):
    """The mark is a time: a job left at that very time is behind it, not before."""
    jobs = made(4)
    for job_id in jobs:
        write(connection, job_id, available_at="2001-01-01 00:00:00.000000")
    write(connection, jobs[2], crashes=1)
    assert ids(claim_jobs(connection, 1, ahead=9, lanes=lanes)) == jobs[:2]
    assert ids(claim_jobs(connection, 1, ahead=9, lanes=lanes)) == jobs[2:]


def test_a_full_claim_is_not_probed_before_the_next(connection, lanes):
    jobs = made(9)
    write(connection, jobs[4], crashes=1)
    claim_jobs(connection, 1, ahead=2, lanes=lanes)
    assert not probed(connection, lanes, 1, 2)  # stops after the fourth
    assert probed(connection, lanes, 1, 2)


def probed(connection, lanes: Lanes, limit: int, ahead: int) -> bool:
    with count_statements(connection) as statements:
        assert claim_jobs(connection, limit, ahead=ahead, lanes=lanes)
    return any("leasequeue:probe" in sql for sql in statements)


def test_statements(connection, lanes):
    jobs = made(40)
    write(connection, jobs[30], crashes=1)
    claim_jobs(connection, 2, ahead=8, lanes=lanes)
    with count_statements(connection) as statements:
        assert len(claim_jobs(connection, 2, ahead=38, lanes=lanes)) == 20
    assert len(statements) <= 6


def test_a_job_that_cannot_be_claimed_among_those_ahead(connection, lanes):
    """The refusal of one row costs its neighbours nothing."""
    from django.db import DataError

    jobs = made(4)

    def refuse() -> None:
        raise DataError("out of range")

    with at_statement(connection, "SET status = 'reserved'", refuse) as refused:
        held = claim_jobs(connection, 0, ahead=4, lanes=lanes)
    assert refused
    assert ids(held) == jobs[:1]
    assert ids(claim_jobs(connection, 9, lanes=lanes)) == jobs[1:]
