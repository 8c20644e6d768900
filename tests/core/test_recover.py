"""Recover: what no worker holds any more runs again or is dead, once, whoever takes it back."""

from __future__ import annotations

import pytest
from django.db import IntegrityError

from django_leasequeue import enqueue
from django_leasequeue.core.claim import MAX_REFUSALS
from django_leasequeue.core.recover import BATCH, Refusals, recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import (
    WORKER,
    claim_one,
    expire,
    history,
    job,
    running,
    shift,
    snapshot,
    write,
)
from tests.core.interleave import at_statement
from tests.core.refusing import refusing
from tests.faults import RECONNECT, REPEAT, Fault, Rival, broken, holding_job, severs
from tests.statements import count_statements
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def lapsed(connection, count=1, **options):
    jobs = running(connection, count, **options)
    expire(connection, *(held.job_id for held in jobs))
    return jobs


def test_it_is_ready_now(connection):
    (held,) = lapsed(connection)
    (recovered,) = recover_batch(connection)
    assert (recovered.job_id, recovered.status, recovered.worker) == (held.job_id, "ready", WORKER)
    assert (recovered.job_type, recovered.queue, recovered.attempt) == ("arranged", "default", 1)
    row = job(held.job_id)
    assert (row.status, row.attempts, row.crashes, row.claims) == ("ready", 1, 1, 1)
    assert row.lease_token is row.lease_until is row.finished_at is None
    assert row.last_error == "Lease expired; returned to queue"
    assert list(Job.objects.due()) == [row]
    assert claim_one(connection).attempt == 2


def test_the_attempt_row_names_the_worker_that_lost_it(connection):
    (held,) = lapsed(connection)
    claimed = job(held.job_id)
    recover_batch(connection)
    (attempt,) = history(held.job_id)
    assert (attempt.outcome, attempt.worker, attempt.number) == ("expired", WORKER, 1)
    assert attempt.token == held.lease.token
    assert attempt.started_at == claimed.claimed_at
    assert attempt.error_text == "Lease expired; returned to queue"


@pytest.mark.parametrize(
    "counters", [{"attempts": 5}, {"attempts": 2, "crashes": 2}], ids=["attempts", "crashes"]
)
def test_dead_at_whichever_budget_ends_first(connection, counters):
    (held,) = lapsed(connection)
    write(connection, held.job_id, **counters)
    (recovered,) = recover_batch(connection)
    assert recovered.status == "dead"
    row = job(held.job_id)
    assert (row.status, row.crashes) == ("dead", counters.get("crashes", 0) + 1)
    assert row.last_error == "Lease expired after final attempt"
    assert row.lease_token is None
    assert row.lease_until is not None  # it waits for its burial
    assert row.finished_at is not None
    assert recover_batch(connection) == []


def test_a_poison_job_that_kills_its_workers_ends(connection):
    made = enqueue("t", max_attempts=100)
    for _ in range(3):
        expire(connection, claim_one(connection).job_id)
        assert len(recover_batch(connection)) == 1
    row = job(made.id)
    assert (row.status, row.crashes, row.attempts) == ("dead", 3, 3)
    assert [attempt.number for attempt in history(made.id)] == [1, 2, 3]


def test_what_is_held_is_left_alone(connection):
    held = running(connection, 3)
    enqueue("t")
    shift(connection, held[0].job_id, "lease_until", 1)
    before = snapshot(connection)
    assert recover_batch(connection) == []
    assert snapshot(connection) == before


def test_the_oldest_first_and_a_hundred_at_a_time(connection):
    jobs = running(connection, 130)
    for n, held in enumerate(reversed(jobs)):
        shift(connection, held.job_id, "lease_until", n - 1000)
    first = recover_batch(connection)
    assert len(first) == BATCH == 100
    expected = [held.job_id for held in reversed(jobs)]
    assert {each.job_id for each in first} == set(expected[:100])
    assert {each.job_id for each in recover_batch(connection)} == set(expected[100:])
    assert recover_batch(connection) == []


def test_the_public_call_takes_all(connection):
    from django_leasequeue.core.operate import recover

    lapsed(connection, 130)
    assert recover() == 130
    assert recover() == 0


def test_of_all_queues(connection):
    jobs = [*lapsed(connection, queue="a"), *lapsed(connection, queue="b"), *lapsed(connection)]
    found = {each.job_id: each.queue for each in recover_batch(connection)}
    assert found == dict(zip([held.job_id for held in jobs], ["a", "b", "default"], strict=True))
    assert {job(held.job_id).status for held in jobs} == {"ready"}


def test_ready_and_dead_in_one_batch(connection):
    living, dying = lapsed(connection, 2), lapsed(connection, 2, max_attempts=1)
    found = {each.job_id: each.status for each in recover_batch(connection)}
    assert found == {
        **{held.job_id: "ready" for held in living},
        **{held.job_id: "dead" for held in dying},
    }


def test_statements(connection):
    lapsed(connection, 20)
    with count_statements(connection) as statements:
        recover_batch(connection)
    assert len(statements) <= 5
    with count_statements(connection) as idle:
        recover_batch(connection)
    assert len(idle) <= 3


@SERVERS
def test_three_workers_recover_the_same_fifty(connection, session):
    """Each starts while the one before it has its rows locked; then all of them at once."""
    jobs = lapsed(connection, 50)
    first, second, third = (session() for _ in range(3))
    found = []

    with (
        at_statement(first, "^COMMIT$", lambda: found.append(recover_batch(second, 20))),
        at_statement(second, "^COMMIT$", lambda: found.append(recover_batch(third))),
    ):
        found.append(recover_batch(first, 20))
    ids = [each.job_id for batch in found for each in batch]
    assert sorted(ids) == [held.job_id for held in jobs]
    assert sorted(len(batch) for batch in found) == [10, 20, 20]
    assert [len(history(held.job_id)) for held in jobs] == [1] * 50
    assert {job(held.job_id).crashes for held in jobs} == {1}


def test_a_race_for_the_same_fifty(connection, session):
    jobs = lapsed(connection, 50)
    sessions = [session() for _ in range(3)]
    rivals = [Rival(lambda session=session: recover_batch(session, 20)) for session in sessions]
    ids = [each.job_id for rival in rivals for each in rival.result()]
    ids += [each.job_id for each in recover_batch(connection)]
    assert sorted(ids) == [held.job_id for held in jobs]
    assert [len(history(held.job_id)) for held in jobs] == [1] * 50


@SERVERS
def test_a_locked_row_is_left_to_whoever_has_it(connection, session):
    locked, free = lapsed(connection, 2)
    with holding_job(session(), locked.job_id):
        assert [each.job_id for each in recover_batch(connection)] == [free.job_id]
    assert [each.job_id for each in recover_batch(connection)] == [locked.job_id]


@SERVERS
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_recovers_nobody_twice(connection, when):
    jobs = lapsed(connection, 3)
    code = next(code for code in RECONNECT[connection.vendor] if severs(code))
    with broken(connection, Fault(code, match=lambda sql: sql == "COMMIT", when=when)):
        recover_batch(connection)
    # The server notices a lost session, and frees its rows, in its own time.
    wait_until(lambda: recover_batch(connection) or not Job.objects.reserved().exists())
    assert [job(held.job_id).crashes for held in jobs] == [1, 1, 1]
    assert [len(history(held.job_id)) for held in jobs] == [1, 1, 1]


def test_a_deadlock_is_repeated(connection):
    lapsed(connection, 3)
    code = REPEAT[connection.vendor][0]
    with broken(connection, Fault(code, match=lambda sql: "UPDATE" in sql, times=2)) as fault:
        assert len(recover_batch(connection)) == 3
    assert fault.fired == 2


def test_its_worker_learns_of_it(connection):
    (held,) = lapsed(connection)
    recover_batch(connection)
    (settled,) = settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert settled.verdict is Verdict.LOST
    assert job(held.job_id).status == "ready"


@pytest.mark.parametrize("limit", [1, BATCH])
def test_a_database_that_takes_nothing_back_kills_a_few_jobs_at_most(connection, limit):
    jobs = lapsed(connection, 3 * MAX_REFUSALS)
    refusals = Refusals()
    found = []
    with refusing(connection, "status = 'ready'"):
        while len(found) < MAX_REFUSALS:
            found += recover_batch(connection, limit, refusals)
        for _ in range(3):
            with pytest.raises(IntegrityError):
                recover_batch(connection, limit, refusals)
    statuses = [job(held.job_id).status for held in jobs]
    assert sorted(statuses) == ["dead"] * MAX_REFUSALS + ["reserved"] * 2 * MAX_REFUSALS
    assert len(recover_batch(connection, BATCH, refusals)) == 2 * MAX_REFUSALS
    assert refusals.in_a_row == 0


@SERVERS
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_answer_to_giving_one_up_is_lost(connection, when):
    """Done or not, the next pass goes on from there."""
    poison, good = lapsed(connection, 2)
    write(connection, poison.job_id, job_type="poison")
    lost = next(code for code in RECONNECT[connection.vendor] if severs(code))
    with refusing(connection, "status = 'ready' AND job_type = 'poison'"):
        fault = Fault(lost, match=lambda sql: sql == "COMMIT", when=when)
        with broken(connection, fault):
            recover_batch(connection)
        assert fault.fired == 1
        wait_until(
            lambda: (
                recover_batch(connection) is not None
                and [job(held.job_id).status for held in (poison, good)] == ["dead", "ready"]
            )
        )
