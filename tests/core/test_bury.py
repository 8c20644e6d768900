"""Bury: each death gets its hook's turn, three times at most, by one worker at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_leasequeue import enqueue, requeue
from django_leasequeue.codec import decode_payload
from django_leasequeue.core.attempts import last_end
from django_leasequeue.core.bury import MAX_TRIES, close_burial, postpone_burial, take_burials
from django_leasequeue.core.lease import renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from tests.core.arrange import claim_jobs, expire, job, running, shift, snapshot, write
from tests.faults import holding_job

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def take(connection, *, hook=("arranged",), plain=(), worker="w", seconds=60.0):
    return take_burials(
        connection, with_hook=hook, without_hook=plain, worker=worker, seconds=seconds
    )


def die(connection, count=1, **options):
    jobs = running(connection, count, **options)
    error = ErrorSummary("ValueError", "ValueError: 7")
    outcome = Outcome(End.REJECTED, error=error, bury=True)
    settle(connection, [Ending(held.lease, outcome) for held in jobs])
    return [held.job_id for held in jobs]


def test_nothing_to_bury(connection):
    running(connection, 2)
    assert take(connection) == []
    assert take(connection, hook=()) == []


def test_what_the_hook_is_given(connection):
    (job_id,) = die(connection)
    (burial,) = take(connection, worker="undertaker", seconds=30)
    assert (burial.job_id, burial.attempt, burial.max_attempts) == (job_id, 1, 5)
    assert decode_payload(burial.payload) == {"n": 0}
    row = job(job_id)
    assert (row.status, row.bury_tries, row.leased_by) == ("dead", 1, "undertaker")
    assert row.lease_token == burial.lease.token
    left = row.lease_until - row.updated_at
    assert timedelta(seconds=29) < left < timedelta(seconds=31)
    assert last_end(connection, job_id) == ("rejected", "ValueError: 7")


def test_a_taken_burial_is_nobody_elses(connection):
    ids = die(connection, 3)
    taken = [take(connection, worker=name) for name in ("a", "b", "c")]
    assert sorted(burial.job_id for (burial,) in taken) == ids
    assert take(connection, worker="d") == []


def test_closed_is_closed(connection):
    (job_id,) = die(connection)
    (burial,) = take(connection)
    assert close_burial(connection, burial.lease) is True
    assert close_burial(connection, burial.lease) is False
    row = job(job_id)
    assert (row.status, row.lease_until, row.lease_token) == ("dead", None, None)
    assert take(connection) == []


def test_a_hook_that_failed_has_its_turn_later(connection):
    (job_id,) = die(connection)
    (burial,) = take(connection)
    assert postpone_burial(connection, burial.lease, 30) is True
    assert take(connection) == []
    expire(connection, job_id)
    (again,) = take(connection)
    assert again.lease != burial.lease


def test_a_hook_that_was_not_tried_has_its_turn_at_once(connection):
    """However often a stop comes first: no such try counts."""
    (job_id,) = die(connection)
    for _ in range(MAX_TRIES + 2):
        (burial,) = take(connection)
        assert job(job_id).bury_tries == 1
        assert postpone_burial(connection, burial.lease, 0, tried=False) is True
        assert (job(job_id).bury_tries, job(job_id).lease_token) == (0, None)


def test_three_times_and_no_more(connection):
    (job_id,) = die(connection)
    for _ in range(MAX_TRIES):
        assert len(take(connection)) == 1
        expire(connection, job_id)
    assert take(connection) == []
    row = job(job_id)
    assert (row.bury_tries, row.lease_until) == (3, None)


def test_types_without_a_hook_are_closed_quietly(connection):
    (job_id,) = die(connection)
    assert take(connection, hook=(), plain=("arranged",)) == []
    row = job(job_id)
    assert (row.lease_until, row.bury_tries) == (None, 0)


def test_types_that_this_worker_does_not_know_are_left_to_another(connection):
    die(connection)
    before = snapshot(connection)
    assert take(connection, hook=("other",), plain=("third",)) == []
    assert snapshot(connection) == before
    assert len(take(connection)) == 1


def test_every_kind_of_death_is_buried(connection):
    settled = die(connection)
    lapsed = [held.job_id for held in running(connection, max_attempts=1)]
    expire(connection, *lapsed)
    recover_batch(connection)
    used_up = enqueue("arranged", {})
    write(connection, used_up.id, attempts=5)
    claim_jobs(connection, 1)
    buried = {burial.job_id for _ in range(3) for burial in take(connection)}
    assert buried == {*settled, *lapsed, used_up.id}


def test_a_requeued_job_is_not_buried(connection):
    (job_id,) = die(connection)
    requeue(job_id)
    assert take(connection) == []


def test_each_death_anew(connection):
    (job_id,) = die(connection)
    take(connection)
    requeue(job_id)
    (held,) = claim_jobs(connection, 1)
    settle(connection, [Ending(held.lease, Outcome(End.REJECTED, bury=True))])
    (burial,) = take(connection)
    assert (burial.job_id, job(job_id).bury_tries) == (job_id, 1)


def test_the_oldest_first_and_one_at_a_time(connection):
    ids = die(connection, 5)
    for n, job_id in enumerate(reversed(ids)):
        shift(connection, job_id, "lease_until", n - 1000)
    order = [burial.job_id for _ in ids for burial in take(connection)]
    assert order == list(reversed(ids))


def test_a_burial_is_renewed_while_its_hook_runs(connection):
    die(connection)
    (burial,) = take(connection, seconds=5)
    assert renew(connection, [burial.lease], 60).renewed == (burial.lease,)
    assert take(connection, worker="rival") == []
    close_burial(connection, burial.lease)
    assert renew(connection, [burial.lease], 60).lost == (burial.lease,)


def test_many_without_a_hook_are_closed_in_one_go(connection):
    ids = die(connection, 250)
    hooked = enqueue("hooked")
    (held,) = claim_jobs(connection, 1)
    settle(connection, [Ending(held.lease, Outcome(End.REJECTED, bury=True))])
    found = take(connection, hook=("hooked",), plain=("arranged",))
    assert [burial.job_id for burial in found] == [hooked.id]
    assert all(job(job_id).lease_until is None for job_id in ids)


@SERVERS
def test_a_locked_row_is_not_waited_for(connection, session):
    locked, free = die(connection, 2)
    with holding_job(session(), locked):
        assert [each.job_id for each in take(connection)] == [free]
    assert [each.job_id for each in take(connection)] == [locked]
