"""Claim: what is due becomes reserved under a token that no other claim ever had."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.claim import claim
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import WORKER, claim_jobs, claim_one, history, job, running, shift, write
from tests.faults import Fault, broken
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def test_what_a_claim_writes(connection):
    made = enqueue("t")
    held = claim_one(connection, lease=90)
    row = job(made.id)
    assert (row.status, row.attempts, row.claims, row.crashes) == ("reserved", 1, 1, 0)
    assert row.lease_token == held.lease.token
    assert len(held.lease.token) == 16
    assert row.leased_by == held.leased_by == WORKER
    assert (row.lease_until - row.claimed_at).total_seconds() == pytest.approx(90, abs=0.1)
    assert abs((row.claimed_at - row.updated_at).total_seconds()) < 0.1
    assert (row.last_error, row.finished_at, history(made.id)) == ("", None, [])
    assert list(Job.objects.reserved()) == [row]


def test_nothing_is_due(connection):
    assert claim_jobs(connection, 5) == []
    enqueue("t", delay=60)
    assert claim_jobs(connection, 5) == []
    assert claim_jobs(connection, 5, queues="default,other") == []


def test_it_takes_no_more_than_asked_for(connection):
    ids = [enqueue("t").id for _ in range(5)]
    assert [held.job_id for held in claim_jobs(connection, 2)] == ids[:2]
    assert [held.job_id for held in claim_jobs(connection, 5)] == ids[2:]


def test_one_token_a_claim_call(connection):
    for _ in range(4):
        enqueue("t")
    first, second = claim_jobs(connection, 2), claim_jobs(connection, 2)
    assert len({held.lease.token for held in first}) == 1
    assert first[0].lease.token != second[0].lease.token


def test_each_claim_counts(connection):
    (held,) = running(connection)
    for number in (2, 3):
        settle(connection, [Ending(held.lease, Outcome(End.FAILED))])
        again = claim_one(connection)
        assert (again.attempt, again.number) == (number, number)
        assert again.lease != held.lease
        held = again


def test_job_types_with_leases_of_their_own(connection):
    for name in ("slow", "fast", "slow", "other"):
        enqueue(name)
    held = claim_jobs(connection, 9, lease=60, leases={"slow": 600, "fast": 6})
    assert [each.seconds for each in held] == [600, 6, 600, 60]
    for each in held:
        row = job(each.job_id)
        until = (row.lease_until - row.claimed_at).total_seconds()
        assert until == pytest.approx(each.seconds, abs=0.1)
    assert len({each.lease.token for each in held}) == 1


@pytest.mark.parametrize("attempts", [5, 6])
def test_used_up_attempts_are_the_end(connection, attempts):
    made = enqueue("t", max_attempts=5)
    write(connection, made.id, attempts=attempts)
    assert claim_jobs(connection, 5) == []
    row = job(made.id)
    assert (row.status, row.attempts, row.claims) == ("dead", attempts, 0)
    assert row.last_error == "Attempts used up before this claim"
    assert row.lease_token is None
    assert row.lease_until is not None  # its burial waits
    assert row.finished_at is not None
    assert history(made.id) == []


@pytest.mark.parametrize("limit", [1, 3])
def test_the_dead_and_the_expired_hide_nobody(connection, limit):
    """A queue whose first jobs all come to nothing has its first good job claimed at once."""
    for _ in range(7):
        write(connection, enqueue("t").id, attempts=5)
        enqueue("t", expires=0)
    good = enqueue("t")
    enqueue("t", priority=-1)
    assert claim_jobs(connection, limit)[0].job_id == good.id


def test_a_job_past_its_expiry_does_not_run_again(connection):
    made = enqueue("t", expires=60)
    settle(connection, [Ending(claim_one(connection).lease, Outcome(End.FAILED))])
    shift(connection, made.id, "expires_at", -1)
    assert claim_jobs(connection, 5) == []
    row = job(made.id)
    assert (row.status, row.attempts, row.lease_until) == ("cancelled", 1, None)


def test_a_claim_in_passing_trouble_is_repeated(connection, alias):
    from tests.faults import codes_for

    enqueue("t")
    for number, code in enumerate(codes_for(connection)):
        fault = Fault(code, match=lambda sql: "SELECT id, job_type" in sql)
        with broken(connection, fault):
            held = claim_one(connection)
        assert fault.fired == 1
        assert held.number == number + 1
        settle(connection, [Ending(held.lease, Outcome(End.RELEASED, started=False))])


def test_statements_of_a_claim(connection):
    lanes = Lanes(("default",))
    for _ in range(20):
        enqueue("t")
    claim_jobs(connection, 5, lanes=lanes)
    with count_statements(connection) as statements:
        assert len(claim_jobs(connection, 5, lanes=lanes)) == 5
    assert len(statements) <= 6
    assert statements[-2] == "COMMIT"


@pytest.mark.parametrize("queues", [("default",), ("*",)])
def test_statements_of_an_idle_poll(connection, lane_clock, queues):
    lanes = Lanes(queues)
    enqueue("t", delay=3600)
    claim_jobs(connection, 5, lanes=lanes)
    counts = []
    for _ in range(20):
        lane_clock.now += 0.3
        with count_statements(connection) as statements:
            assert claim_jobs(connection, 5, lanes=lanes) == []
        counts.append(len(statements))
    assert max(counts) <= 3 + 3 * (queues == ("*",))
    assert sum(counts) / len(counts) <= 3


def test_a_claim_of_nothing_takes_no_lock(connection, lane_clock):
    lanes = Lanes(("default",))
    claim_jobs(connection, 5, lanes=lanes)
    with count_statements(connection) as statements:
        claim_jobs(connection, 5, lanes=lanes)
    assert not any("FOR UPDATE" in sql or "BEGIN" in sql for sql in statements)


def test_the_signature_of_claim(connection):
    from django_leasequeue.core.claim import ClaimSettings

    enqueue("t")
    (held,) = claim(connection, Lanes(("*",)), 3, ClaimSettings("w" * 255, 5, {}))
    assert job(held.job_id).leased_by == "w" * 255
