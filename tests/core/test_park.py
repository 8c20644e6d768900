"""Parked jobs: woken by a worker that knows their type, in its own queues, and by no other."""

from __future__ import annotations

import pytest

from django_leasequeue import cancel, enqueue
from django_leasequeue.core.claim import claim
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.park import wake
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.core.take import ClaimSettings
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import WORKER, job, outcomes, running, write
from tests.faults import holding_job
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

PARKED = Outcome(End.PARKED, reason="Parked", started=False)


def park(connection, count=1, **options):
    jobs = running(connection, count, **options)
    settle(connection, [Ending(held.lease, PARKED) for held in jobs])
    return [held.job_id for held in jobs]


def test_parking_spends_nothing_and_leaves_no_record(connection):
    (held,) = running(connection, key="k", key_until="finished")
    before = job(held.job_id)
    settle(connection, [Ending(held.lease, PARKED)])
    row = job(held.job_id)
    assert (row.status, row.attempts, row.claims, row.releases) == ("parked", 0, 1, 0)
    assert (row.available_at, row.live_key) == (before.available_at, before.live_key)
    assert (row.lease_token, row.lease_until, row.finished_at) == (None, None, None)
    assert outcomes(held.job_id) == []


def test_a_parked_job_keeps_its_key(connection):
    """Case E6: it will run again, so its key is taken."""
    (job_id,) = park(connection, key="k", key_until="finished")
    again = enqueue("arranged", key="k", key_until="finished")
    assert (again.id, again.created) == (job_id, False)


def test_woken_it_is_as_before(connection):
    (job_id,) = park(connection)
    before = job(job_id)
    assert wake(connection, {"arranged": 1}, ("*",), 10) == 1
    row = job(job_id)
    assert (row.status, row.last_error, row.attempts) == ("ready", "", 0)
    assert (row.available_at, row.claims) == (before.available_at, before.claims)


@pytest.mark.parametrize(
    ("known", "queues", "woken"),
    [
        ({"arranged": 1}, ("*",), 1),
        ({"arranged": 1, "other": 2}, ("a", "default"), 1),
        ({"other": 1}, ("*",), 0),
        ({"Arranged": 1}, ("*",), 0),
        ({}, ("*",), 0),
        ({"arranged": 1}, ("elsewhere",), 0),
    ],
)
def test_who_wakes_it(connection, known, queues, woken):
    (job_id,) = park(connection)
    assert wake(connection, known, queues, 10) == woken
    assert job(job_id).status == ("ready" if woken else "parked")


def test_a_newer_payload_waits_for_newer_code(connection):
    old, new = park(connection, 2)
    write(connection, new, payload_version=2)
    assert wake(connection, {"arranged": 1, "other": 7}, ("*",), 10) == 1
    assert (job(old).status, job(new).status) == ("ready", "parked")
    assert wake(connection, {"arranged": 2}, ("*",), 10) == 1


def test_batches_are_bounded(connection):
    park(connection, 5)
    known = {"arranged": 1, "other": 2}
    assert [wake(connection, known, ("*",), 2) for _ in range(4)] == [2, 2, 1, 0]


def test_statements(connection):
    with count_statements(connection) as statements:
        wake(connection, {"arranged": 1, "other": 1}, ("*",), 10)
    assert len(statements) == 1
    park(connection, 3)
    with count_statements(connection) as statements:
        wake(connection, {"arranged": 1}, ("*",), 10)
    assert len(statements) <= 6


def test_only_parked_jobs_are_woken(connection):
    (job_id,) = park(connection)
    cancel(job_id)
    done = running(connection)
    assert wake(connection, {"arranged": 1}, ("*",), 10) == 0
    assert (job(job_id).status, job(done[0].job_id).status) == ("cancelled", "reserved")


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_it_waits_for_no_lock(connection, session):
    first, second = park(connection, 2)
    with holding_job(session(), first):
        assert wake(connection, {"arranged": 1}, ("*",), 10) == 1
    assert (job(first).status, job(second).status) == ("parked", "ready")


def test_the_waker_claims_what_it_has_woken(connection):
    """Its lanes' marks are past the job's time: it looks before them."""
    lanes, settings = Lanes(("*",)), ClaimSettings(WORKER, 60, {})
    (parked,) = park(connection)
    later = enqueue("arranged")
    assert [one.job_id for one in claim(connection, lanes, 1, settings)] == [later.id]
    assert wake(connection, {"arranged": 1}, ("*",), 10) == 1
    lanes.forget()
    assert [one.job_id for one in claim(connection, lanes, 1, settings)] == [parked]
    assert Job.objects.get(pk=parked).claims == 2
