"""Standing: what became of a lease, and an operator's cancel told from all other losses."""

from __future__ import annotations

import secrets

import pytest

from django_leasequeue import cancel, requeue
from django_leasequeue.core.bury import close_burial, take_burials
from django_leasequeue.core.lease import Lease, Standing, ends_on_record, standing
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, expire, running, write
from tests.core.interleave import at_statement
from tests.faults import holding_job
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

HELD, LOST = Standing.HELD, Standing.LOST
COMPLETED, CANCELLED = Standing.COMPLETED, Standing.CANCELLED


def stands(connection, held) -> Standing:
    return standing(connection, [held.lease])[held.lease]


def test_what_is_held_costs_one_statement(connection):
    leases = [held.lease for _ in range(3) for held in running(connection, 4)]
    with count_statements(connection) as statements:
        assert standing(connection, leases) == dict.fromkeys(leases, HELD)
    assert len(statements) == 1


def test_nothing_asks_nothing(connection):
    with count_statements(connection) as statements:
        assert standing(connection, []) == {}
    assert statements == []


def test_each_of_many(connection):
    held, expired, cancelled, done, skipped, failed, rejected = running(connection, 7)
    expire(connection, expired.job_id)
    cancel(cancelled.job_id)
    ends = {done: End.COMPLETED, skipped: End.SKIPPED, failed: End.FAILED, rejected: End.REJECTED}
    settle(connection, [Ending(each.lease, Outcome(end)) for each, end in ends.items()])
    other = Lease(held.job_id, secrets.token_bytes(16))
    nobody = Lease(10**9, secrets.token_bytes(16))
    expected = {
        held.lease: HELD,
        cancelled.lease: CANCELLED,
        **dict.fromkeys([done.lease, skipped.lease], COMPLETED),
        **dict.fromkeys([expired.lease, failed.lease, rejected.lease, other, nobody], LOST),
    }
    with count_statements(connection) as statements:
        assert standing(connection, list(expected)) == expected
    # One read; for what has expired whether it is locked, with BEGIN and COMMIT; what is on record.
    assert len(statements) == 5


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_row_locked_past_its_lease_is_held(connection, session):
    """The lock may be its handler's, whose transaction has prolonged the lease."""
    (claimed,) = running(connection, 1)
    expire(connection, claimed.job_id)
    with holding_job(session(), claimed.job_id):
        assert standing(connection, [claimed.lease]) == {claimed.lease: HELD}
    assert standing(connection, [claimed.lease]) == {claimed.lease: LOST}


def test_a_long_history_is_not_read(connection):
    """A job may have snoozed a thousand times."""
    (first,) = running(connection)
    leases = [first]
    for _ in range(5):
        settle(connection, [Ending(leases[-1].lease, Outcome(End.SNOOZED))])
        leases.append(claim_one(connection))
    settle(connection, [Ending(leases[-1].lease, Outcome(End.COMPLETED))])
    assert ends_on_record(connection, [leases[-1].lease]) == {leases[-1].lease: "completed"}
    assert stands(connection, leases[-1]) is COMPLETED
    assert stands(connection, leases[-2]) is LOST


def test_a_job_that_another_attempt_took_and_that_was_cancelled_then(connection):
    """The cancel was not of the stale worker's attempt: its lease had been lost before."""
    (stale,) = running(connection)
    expire(connection, stale.job_id)
    recover_batch(connection)
    fresh = claim_one(connection)
    cancel(fresh.job_id)
    assert stands(connection, stale) is LOST
    assert stands(connection, fresh) is CANCELLED


def test_a_job_cancelled_after_its_recovery(connection):
    (stale,) = running(connection)
    expire(connection, stale.job_id)
    recover_batch(connection)
    cancel(stale.job_id)
    assert stands(connection, stale) is LOST


def test_a_cancelled_attempt_stays_one_after_a_requeue(connection):
    (stopped,) = running(connection)
    cancel(stopped.job_id)
    requeue(stopped.job_id)
    assert stands(connection, stopped) is CANCELLED
    again = claim_one(connection)
    assert stands(connection, stopped) is CANCELLED
    assert stands(connection, again) is HELD


def test_a_cancel_that_expiry_came_before(connection):
    """Nobody had taken it back yet: the operator did end this attempt."""
    (late,) = running(connection)
    expire(connection, late.job_id)
    cancel(late.job_id)
    assert stands(connection, late) is CANCELLED


def test_a_status_changed_by_hand_is_no_cancel_of_ours(connection):
    (held,) = running(connection)
    write(connection, held.job_id, status="cancelled", lease_token=None, lease_until=None)
    assert stands(connection, held) is LOST


def test_a_burial(connection):
    (held,) = running(connection)
    settle(connection, [Ending(held.lease, Outcome(End.REJECTED, bury=True))])
    (burial,) = take_burials(
        connection, with_hook=["arranged"], without_hook=[], worker="w", seconds=60
    )
    assert stands(connection, held) is LOST
    assert stands(connection, burial) is HELD
    close_burial(connection, burial.lease)
    assert stands(connection, burial) is LOST


def test_a_cancel_between_the_reads(connection):
    (held,) = running(connection)
    expire(connection, held.job_id)
    with at_statement(connection, "leasequeue_jobattempt", lambda: cancel(held.job_id)) as reached:
        assert stands(connection, held) is CANCELLED
    assert reached


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_no_lock_is_waited_for(connection, session):
    held, cancelled = running(connection, 2)
    cancel(cancelled.job_id)
    with holding_job(session(), held.job_id), holding_job(session(), cancelled.job_id):
        assert stands(connection, held) is HELD
        assert stands(connection, cancelled) is CANCELLED
