"""The fence in handlers: a lease that is gone takes the business rows of its attempt with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import cancel
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.outcomes import Outcome
from tests.core.arrange import claim_one, expire, running, snapshot
from tests.core.reports import make_report, reports

pytestmark = pytest.mark.leaves_reserved


def expired(rival: BaseDatabaseWrapper, job_id: int) -> None:
    expire(rival, job_id)


def recovered(rival: BaseDatabaseWrapper, job_id: int) -> None:
    expire(rival, job_id)
    assert len(recover_batch(rival)) == 1


def claimed_again(rival: BaseDatabaseWrapper, job_id: int) -> None:
    recovered(rival, job_id)
    assert claim_one(rival, worker="rival:host:2:00").job_id == job_id


def cancelled(rival: BaseDatabaseWrapper, job_id: int) -> None:
    before, connections["default"] = connections["default"], rival
    try:
        assert cancel(job_id) == [job_id]
    finally:
        connections["default"] = before


WAYS: list[Callable[[BaseDatabaseWrapper, int], None]] = [
    expired,
    recovered,
    claimed_again,
    cancelled,
]


def refused(connection: BaseDatabaseWrapper, job: Claimed, outcome: Outcome) -> bool:
    """Settle as a worker does next; tell whether nothing at all was written."""
    assert not outcome.settled
    before = snapshot(connection)
    (settled,) = settle(connection, [Ending(job.lease, outcome)])
    same = snapshot(connection) == before and not reports()
    return same and settled.verdict is Verdict.LOST


@pytest.mark.parametrize("way", WAYS)
def test_complete(connection, session, declare, attempt, way):
    entered: list[bool] = []
    rival = session()

    @declare("arranged", takes_context=True)
    def handler(context, n):
        way(rival, context.job_id)
        with context.complete({"n": n}):
            entered.append(True)
            make_report()

    (job,) = running(connection)
    outcome = attempt(job)
    assert outcome.error.error_class == "LeaseLost"
    assert entered == []
    assert refused(connection, job, outcome)


@pytest.mark.parametrize("way", WAYS)
def test_an_atomic_handler_whose_lease_was_gone(connection, declare, attempt, way):
    @declare("arranged", atomic=True)
    def handler(n):
        make_report()

    (job,) = running(connection)
    way(connection, job.job_id)
    outcome = attempt(job)
    assert outcome.error.error_class == "LeaseLost"
    assert refused(connection, job, outcome)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("way", WAYS)
def test_an_atomic_handler_whose_lease_goes_meanwhile(connection, session, declare, attempt, way):
    rival = session()

    @declare("arranged", takes_context=True, atomic=True)
    def handler(context, n):
        make_report()
        way(rival, context.job_id)

    (job,) = running(connection)
    outcome = attempt(job)
    assert outcome.error.error_class == "LeaseLost"
    assert refused(connection, job, outcome)


@pytest.mark.parametrize("atomic", [False, True])
def test_a_deadline_that_passes_inside_the_transaction(connection, declare, attempt, atomic):
    """The fence at the transaction's end sees it, whoever holds the row's lock."""

    def effects(context):
        make_report()
        expire(connections["default"], context.job_id)

    @declare("arranged", takes_context=True, atomic=atomic)
    def handler(context, n):
        with nullcontext() if atomic else context.complete():
            effects(context)

    (job,) = running(connection)
    before = snapshot(connection)
    assert attempt(job).error.error_class == "LeaseLost"
    assert snapshot(connection) == before
    assert reports() == []


def test_a_lease_that_is_no_longer_trusted_asks_no_database(connection, declare, attempt):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            make_report()

    (job,) = running(connection)
    before = snapshot(connection)
    assert attempt(job, seconds=0).error.error_class == "LeaseLost"
    assert snapshot(connection) == before
