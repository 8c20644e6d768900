"""The low-water mark: claims begin where the last one ended, and miss nothing for long."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.lanes import Lanes
from tests.core.arrange import claim_jobs, claim_one, shift
from tests.core.interleave import at_statement
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


@pytest.fixture
def lanes(connection, lane_clock):
    """A worker's lanes with a mark, in the second after its full look."""
    lanes = Lanes(("default",))
    for _ in range(3):
        enqueue("t")
    claim_jobs(connection, 2, lanes=lanes)
    return lanes


def late(seconds: float = -60) -> int:
    """Commit a job now that was available before all others, as a slow transaction does."""
    return enqueue("t", run_after=datetime(2001, 1, 1, tzinfo=UTC)).id


def test_a_claim_begins_at_the_mark(connection, lanes):
    with count_statements(connection) as statements:
        claim_one(connection, lanes=lanes)
    (select,) = [sql for sql in statements if "SELECT id, job_type" in sql]
    assert "available_at >= %s" in select


def test_a_late_commit_is_seen_within_a_second(connection, lanes, lane_clock):
    job_id = late()
    lane_clock.now += 1
    assert claim_one(connection, lanes=lanes).job_id == job_id


def test_a_late_commit_is_seen_by_a_busy_worker_too(connection, lanes, lane_clock):
    """The lane has always something behind the mark, and is looked at whole all the same."""
    for _ in range(30):
        enqueue("t")
    job_id = late()
    found = []
    for _ in range(11):
        lane_clock.now += 0.1
        found.append(claim_one(connection, lanes=lanes).job_id)
    assert job_id in found


def test_a_late_commit_in_an_idle_lane(connection, lanes, lane_clock):
    claim_jobs(connection, 9, lanes=lanes)
    assert claim_jobs(connection, 9, lanes=lanes) == []
    job_id = late()
    lane_clock.now += 1
    assert claim_one(connection, lanes=lanes).job_id == job_id


def test_a_retry_comes_after_the_mark_anyway(connection, lanes):
    claim_jobs(connection, 9, lanes=lanes)
    made = enqueue("t", delay=3600)
    assert claim_jobs(connection, 9, lanes=lanes) == []
    shift(connection, made.id, "available_at", 0)
    assert claim_one(connection, lanes=lanes).job_id == made.id


def test_a_full_look_costs_a_twentieth_of_the_time_at_most(connection, lanes, lane_clock):
    """A look that took two seconds is not repeated for forty."""

    def looked() -> bool:
        with count_statements(connection) as statements:
            claim_jobs(connection, 9, lanes=lanes)
        probes = [sql for sql in statements if "leasequeue:probe" in sql]
        return any("available_at >=" not in sql for sql in probes)

    def pass_time() -> None:
        lane_clock.now += 2

    enqueue("t", delay=3600)  # a lane without any ready job is not looked into
    claim_jobs(connection, 9, lanes=lanes)
    lane_clock.now += 1
    with at_statement(connection, "leasequeue:probe", pass_time):
        assert looked()
    looks = []
    for _ in range(45):
        lane_clock.now += 1
        looks.append(looked())
    assert looks.index(True) in (38, 39, 40)


def test_forget_looks_everywhere_anew(connection, lanes):
    job_id = late()
    lanes.forget()
    assert claim_one(connection, lanes=lanes).job_id == job_id


def test_a_new_worker_has_no_mark(connection, lanes):
    job_id = late()
    assert claim_one(connection).job_id == job_id
