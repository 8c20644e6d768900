"""Settling against others: a locked row is pending, a lost answer is looked up."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import DatabaseError

from django_leasequeue import cancel
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import hold_within
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import expire, history, job, outcomes, running, snapshot
from tests.core.interleave import at_statement
from tests.faults import RECONNECT, REPEAT, Fault, broken, holding_job, severs
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.fixture
def lost(connection):
    return next(code for code in RECONNECT[connection.vendor] if severs(code))


def commit(sql: str) -> bool:
    return sql == "COMMIT"


def endings(jobs, end=End.COMPLETED, **options):
    return [Ending(held.lease, Outcome(end, **options)) for held in jobs]


@SERVERS
def test_a_locked_row_is_pending_and_the_others_are_settled(connection, session):
    jobs = running(connection, 3)
    before = job(jobs[1].job_id)
    with holding_job(session(), jobs[1].job_id):
        settled = settle(connection, endings(jobs))
        assert job(jobs[1].job_id) == before
    assert [each.verdict for each in settled] == [
        Verdict.SETTLED,
        Verdict.PENDING,
        Verdict.SETTLED,
    ]
    assert outcomes(jobs[1].job_id) == []
    (settled_later,) = settle(connection, endings(jobs[1:2]))
    assert (settled_later.verdict, settled_later.status) == (Verdict.SETTLED, "done")


@SERVERS
@pytest.mark.parametrize("end", [End.PARKED, End.RELEASED])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_about_what_leaves_no_record(connection, lost, end, when):
    """Parked, or given back before it began, it is that, and no lease was lost."""
    (held,) = running(connection)
    ending = Ending(held.lease, Outcome(end, started=False))
    with broken(connection, Fault(lost, match=commit, when=when)):
        (settled,) = settle(connection, [ending])
    if settled.verdict is Verdict.PENDING:
        settled = wait_until(lambda: _settled(connection, ending))
    assert settled.verdict is Verdict.SETTLED
    assert job(held.job_id).status == ("parked" if end is End.PARKED else "ready")


def _settled(connection, ending):
    (settled,) = settle(connection, [ending])
    return settled if settled.verdict is not Verdict.PENDING else None


@pytest.mark.parametrize("by", ["nobody", "recovery", "an operator"])
def test_a_lease_that_somebody_else_has_ended_was_not_given_back(connection, by):
    (held,) = running(connection)
    expire(connection, held.job_id)
    if by == "recovery":
        recover_batch(connection)
    if by == "an operator":
        cancel(held.job_id)
    (settled,) = settle(connection, [Ending(held.lease, Outcome(End.PARKED, started=False))])
    assert settled.verdict is Verdict.LOST


@SERVERS
def test_a_handlers_own_transaction_is_not_waited_for(connection, session):
    (held,) = running(connection)
    handler = session()
    handler.set_autocommit(False)
    with handler.cursor() as cursor:
        hold_within(handler, cursor, held.lease, 60)
    (settled,) = settle(connection, endings([held], End.FAILED))
    assert settled.verdict is Verdict.PENDING
    handler.rollback()
    assert settle(connection, endings([held], End.FAILED))[0].status == "ready"


@SERVERS
def test_a_locked_row_whose_lease_is_over_is_lost(connection, session):
    (held,) = running(connection)
    expire(connection, held.job_id)
    with holding_job(session(), held.job_id):
        assert settle(connection, endings([held]))[0].verdict is Verdict.LOST


@SERVERS
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer(connection, lost, when):
    jobs = running(connection, 3)
    with broken(connection, Fault(lost, match=commit, when=when)) as fault:
        settled = settle(connection, endings(jobs))
    assert fault.fired == 1
    assert {each.verdict for each in settled} == (
        {Verdict.SETTLED} if when == "after" else {Verdict.PENDING}
    )
    # The server notices a lost session, and frees its rows, in its own time.
    wait_until(
        lambda: {each.verdict for each in settle(connection, endings(jobs))} == {Verdict.SETTLED}
    )
    for held in jobs:
        assert job(held.job_id).status == "done"
        assert outcomes(held.job_id) == ["completed"]


@SERVERS
def test_what_stands_is_not_written_over(connection, lost):
    """The first settlement was applied, its answer lost: another outcome comes too late."""
    (held,) = running(connection)
    with broken(connection, Fault(lost, match=commit, when="after")):
        settle(connection, endings([held]))
    before = snapshot(connection)
    (settled,) = settle(connection, endings([held], End.FAILED))
    assert (settled.verdict, settled.ending.outcome.end) == (Verdict.SETTLED, End.COMPLETED)
    assert snapshot(connection) == before


@pytest.mark.parametrize("times", [1, 5])
def test_a_deadlock_is_repeated(connection, times):
    jobs = running(connection, 2)
    code = REPEAT[connection.vendor][0]
    with broken(connection, Fault(code, match=commit, times=times)) as fault:
        settled = settle(connection, endings(jobs))
    assert fault.fired == times
    assert {each.status for each in settled} == {"done"}
    assert [outcomes(held.job_id) for held in jobs] == [["completed"]] * 2


def test_endless_trouble_is_told(connection):
    (held,) = running(connection)
    before = snapshot(connection)
    code = REPEAT[connection.vendor][0]
    fault = Fault(code, match=commit, times=99)
    with broken(connection, fault), pytest.raises(DatabaseError):
        settle(connection, endings([held]))
    assert 2 <= fault.fired <= 10
    assert snapshot(connection) == before


def test_a_deadline_that_passes_between_the_lock_and_the_write(connection):
    """Nothing of the group is kept; what still holds is settled at the second try."""
    dying, other = running(connection, 2)

    def end() -> None:
        expire(connection, dying.job_id)

    with at_statement(connection, r"settle \*/ (WITH ended AS \()?UPDATE", end) as reached:
        lost, settled = settle(connection, endings([dying, other]))
    assert reached
    # The expiry was written inside the transaction that was rolled back: it is alive again.
    assert (lost.verdict, settled.verdict) == (Verdict.SETTLED, Verdict.SETTLED)
    assert outcomes(dying.job_id) == outcomes(other.job_id) == ["completed"]


def test_a_deadline_that_keeps_passing(connection):
    """However often it is tried, an expired lease writes nothing and takes nobody with it."""
    dying, other = running(connection, 2)
    calls = []
    dialect = dialect_for(connection)
    token, other_token = map(dialect.token_param, (dying.lease.token, b"x" * 16))

    def watch(execute, sql, params, many, context):
        if "leasequeue:settle" in sql and "UPDATE leasequeue_job" in sql:
            calls.append(sql)
            params = [value if value != token else other_token for value in params]
        return execute(sql, params, many, context)

    before = snapshot(connection)
    with connection.execute_wrapper(watch), suppress(Exception):
        settle(connection, endings([dying]))
    assert 1 < len(calls) < 10
    assert snapshot(connection) == before
    assert settle(connection, endings([other]))[0].status == "done"


@SERVERS
def test_two_workers_settle_the_same_list(connection, session):
    """The second sees what the first has locked, and later what stands."""
    jobs = running(connection, 5)
    rival = session()
    seen = []

    def meanwhile() -> None:
        seen.extend(settle(rival, endings(jobs)))

    with at_statement(connection, "^COMMIT$", meanwhile):
        settled = settle(connection, endings(jobs))
    assert {each.verdict for each in seen} == {Verdict.PENDING}
    assert {each.verdict for each in settled} == {Verdict.SETTLED}
    assert {each.verdict for each in settle(rival, endings(jobs))} == {Verdict.SETTLED}
    assert [len(history(held.job_id)) for held in jobs] == [1] * 5


@pytest.mark.only_on("mariadb", "mysql")
@pytest.mark.parametrize("code", [1317, 1969, 3024])
def test_a_statement_that_was_killed_does_not_fail_the_job(connection, code):
    """KILL QUERY, or a time limit: the outcome is as storable as before."""
    (held,) = running(connection)
    with broken(connection, Fault(code, match=lambda sql: "INSERT" in sql)) as fault:
        (settled,) = settle(connection, endings([held]))
    assert fault.fired == 1
    assert settled.status == "done"
    assert outcomes(held.job_id) == ["completed"]
