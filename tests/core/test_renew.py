"""Renew: held leases run on, expired ones are never revived, and nobody waits for a lock."""

from __future__ import annotations

import pytest

from django_leasequeue.core.lease import hold_within, renew
from tests.core.arrange import expire, job, running, shift, snapshot
from tests.core.interleave import at_statement
from tests.faults import RECONNECT, Fault, broken, holding_job, severs
from tests.statements import count_statements
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def remaining(job_id):
    row = job(job_id)
    return (row.lease_until - row.updated_at).total_seconds()


def test_nothing_to_renew(connection):
    with count_statements(connection) as statements:
        assert renew(connection, [], 60) == ((), (), ())
    assert statements == []


def test_what_it_writes(connection):
    jobs = running(connection, 3)
    for held in jobs:
        shift(connection, held.job_id, "lease_until", 1)
    before = [job(held.job_id) for held in jobs]
    renewal = renew(connection, [held.lease for held in jobs], 90)
    assert renewal.renewed == tuple(held.lease for held in jobs)
    assert (renewal.lost, renewal.pending) == ((), ())
    for row in before:
        after = job(row.id)
        assert remaining(row.id) == pytest.approx(90, abs=0.1)
        assert (after.attempts, after.claims, after.lease_token, after.claimed_at) == (
            *(row.attempts, row.claims, row.lease_token),
            row.claimed_at,
        )


def test_a_mixed_bag_keeps_its_order(connection):
    jobs = running(connection, 5)
    expire(connection, jobs[1].job_id, jobs[3].job_id)
    leases = [held.lease for held in jobs]
    renewal = renew(connection, [*leases, leases[0]], 60)
    assert renewal.renewed[:3] == (leases[0], leases[2], leases[4])
    assert set(renewal.renewed) == {leases[0], leases[2], leases[4]}
    assert set(renewal.lost) == {leases[1], leases[3]}


def test_leases_of_several_claims(connection):
    leases = [held.lease for _ in range(3) for held in running(connection, 2)]
    assert set(renew(connection, leases, 60).renewed) == set(leases)


@SERVERS
def test_a_locked_row_is_pending_and_stops_nobody(connection, session):
    locked, free = running(connection, 2)
    before = job(locked.job_id)
    with holding_job(session(), locked.job_id):
        renewal = renew(connection, [locked.lease, free.lease], 90)
    assert renewal == ((free.lease,), (), (locked.lease,))
    assert job(locked.job_id) == before
    assert renew(connection, [locked.lease], 90).renewed == (locked.lease,)


@SERVERS
def test_a_locked_row_whose_lease_is_over_is_pending(connection, session):
    """Nobody can take it, and its handler's transaction may have prolonged the lease."""
    (held,) = running(connection)
    expire(connection, held.job_id)
    with holding_job(session(), held.job_id):
        assert renew(connection, [held.lease], 60).pending == (held.lease,)
    assert renew(connection, [held.lease], 60).lost == (held.lease,)


def test_a_lease_that_ends_between_the_lock_and_the_write(connection):
    dying, other = running(connection, 2)
    before = {}

    def end() -> None:
        expire(connection, dying.job_id)
        before.update(snapshot(connection))

    with at_statement(connection, r"renew \*/ UPDATE", end):
        renewal = renew(connection, [dying.lease, other.lease], 90)
    assert dying.lease not in renewal.renewed
    assert renewal.lost == (dying.lease,)
    rows = {row[0]: row for row in before["leasequeue_job"]}
    after = {row[0]: row for row in snapshot(connection)["leasequeue_job"]}
    assert after[dying.job_id] == rows[dying.job_id]


@SERVERS
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_answer_that_is_lost_costs_no_lease(connection, when):
    (held,) = running(connection)
    code = next(code for code in RECONNECT[connection.vendor] if severs(code))
    with broken(connection, Fault(code, match=lambda sql: sql == "COMMIT", when=when)):
        renewal = renew(connection, [held.lease], 90)
    assert renewal.lost == ()
    # The server notices a lost session, and frees its rows, in its own time.
    wait_until(lambda: renew(connection, [held.lease], 90).renewed == (held.lease,))


def test_statements(connection):
    leases = [held.lease for held in running(connection, 20)]
    with count_statements(connection) as statements:
        renew(connection, leases, 60)
    assert len(statements) <= 4


@SERVERS
def test_a_handlers_transaction_that_holds_its_row_is_not_waited_for(connection, session):
    """complete() prolongs the lease itself, for the renewer cannot."""
    (held,) = running(connection)
    handler = session()
    handler.set_autocommit(False)
    with handler.cursor() as cursor:
        hold_within(handler, cursor, held.lease, 120)
    assert renew(connection, [held.lease], 60).pending == (held.lease,)
    handler.commit()
    assert 110 < remaining(held.job_id) < 130
