"""E5, E6: one live job for each key, which is given back exactly when the job is final."""

from __future__ import annotations

import pytest

from django_leasequeue import cancel, enqueue, erase
from django_leasequeue.core.park import wake
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, expire, job, shift, write

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

KEY = {"key": "k", "key_until": "finished"}


def ended(end, **options):
    """Return a way through an attempt that ends so."""

    def walk(connection, held):
        settle(connection, [Ending(held.lease, Outcome(end, **options))])

    walk.__name__ = f"{end.value} {options or ''}".strip()
    return walk


def recovered(connection, held):
    expire(connection, held.job_id)
    assert recover_batch(connection)


def recovered_for_the_last_time(connection, held):
    write(connection, held.job_id, max_attempts=1)
    recovered(connection, held)


def crashed_for_the_last_time(connection, held):
    write(connection, held.job_id, max_crashes=1)
    settle(connection, [Ending(held.lease, Outcome(End.CRASHED))])


def used_up(connection, held):
    write(connection, held.job_id, max_attempts=1)
    settle(connection, [Ending(held.lease, Outcome(End.FAILED))])


def cancelled(connection, held):
    assert cancel(held.job_id)


def deleted(connection, held):
    Job.objects.filter(pk=held.job_id).delete()


def erased(connection, held):
    settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert erase(held.job_id)


GOES_ON = [
    ended(End.FAILED),
    ended(End.FAILED, delay=3600.0),
    ended(End.TIMED_OUT),
    ended(End.CRASHED),
    ended(End.RELEASED),
    ended(End.RELEASED, started=False),
    ended(End.SNOOZED),
    ended(End.PARKED, started=False),
    recovered,
]
IS_OVER = [
    ended(End.COMPLETED),
    ended(End.SKIPPED),
    ended(End.REJECTED),
    ended(End.REJECTED, bury=True),
    ended(End.CANCELLED),
    used_up,
    recovered_for_the_last_time,
    crashed_for_the_last_time,
    cancelled,
    deleted,
    erased,
]


@pytest.mark.parametrize("way", GOES_ON, ids=lambda way: way.__name__)
def test_a_job_that_goes_on_keeps_its_key(connection, way):
    """E6: its own retry is not in its own way, and nobody else gets the key."""
    made = enqueue("arranged", **KEY)
    way(connection, claim_one(connection))
    again = enqueue("arranged", **KEY)
    assert (again.id, again.created) == (made.id, False)
    wake(connection, {"arranged": 1}, ("*",), 10)
    shift(connection, made.id, "available_at", -1)
    second = claim_one(connection)
    assert second.job_id == made.id
    settle(connection, [Ending(second.lease, Outcome(End.COMPLETED))])
    assert enqueue("arranged", **KEY).created


@pytest.mark.parametrize("way", IS_OVER, ids=lambda way: way.__name__)
def test_a_job_that_is_over_gives_it_back(connection, way):
    """E6: once, and for one new job."""
    made = enqueue("arranged", **KEY)
    way(connection, claim_one(connection))
    again, third = enqueue("arranged", **KEY), enqueue("arranged", **KEY)
    assert (again.created, third.created, third.id) == (True, False, again.id)
    assert again.id != made.id


def test_two_live_jobs_of_one_key_are_refused_by_the_database(connection):
    """E5: a plain unique index on a column that is NULL at the end; no condition is needed."""
    made = enqueue("arranged", **KEY)
    held = claim_one(connection)
    assert not enqueue("arranged", **KEY).created
    live = Job.objects.exclude(live_key=None)
    assert [row.id for row in live] == [made.id]
    settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert (job(made.id).live_key, job(made.id).key_hash is None) == (None, False)
    assert enqueue("arranged", **KEY).created
    assert live.count() == 1
