"""The fence: whoever cannot show its token, unexpired, changes nothing, by no writing function."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue import LeaseLost, cancel
from django_leasequeue.core.bury import close_burial, postpone_burial, take_burials
from django_leasequeue.core.checkpoint import save_checkpoint
from django_leasequeue.core.lease import Claimed, Lease, hold_within, lock_within, renew
from django_leasequeue.core.progress import save_progress
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, finish_within, settle
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from tests.core.arrange import claim_one, expire, running, shift, snapshot
from tests.core.reports import make_report, reports

pytestmark = pytest.mark.leaves_reserved

Way = Callable[[BaseDatabaseWrapper, Claimed], Lease]
ENDS = {
    "released before start": Outcome(End.RELEASED, started=False),
    **{end.value: Outcome(end, delay=1, error=ErrorSummary("E", "E")) for end in End},
}


# How a lease is gone -----------------------------------------------------------------------------


def stale_token(connection: BaseDatabaseWrapper, job: Claimed) -> Lease:
    return Lease(job.job_id, secrets.token_bytes(16))


def expired(connection: BaseDatabaseWrapper, job: Claimed) -> Lease:
    expire(connection, job.job_id)
    return job.lease


def recovered(connection: BaseDatabaseWrapper, job: Claimed) -> Lease:
    expire(connection, job.job_id)
    assert len(recover_batch(connection)) == 1
    return job.lease


def claimed_again(connection: BaseDatabaseWrapper, job: Claimed) -> Lease:
    recovered(connection, job)
    assert claim_one(connection, worker="rival:host:2:00").lease != job.lease
    return job.lease


def cancelled(connection: BaseDatabaseWrapper, job: Claimed) -> Lease:
    assert cancel(job.job_id) == [job.job_id]
    return job.lease


def another_job(connection: BaseDatabaseWrapper, job: Claimed) -> Lease:
    (other,) = running(connection)
    return Lease(job.job_id, other.lease.token)


WAYS = [stale_token, expired, recovered, claimed_again, cancelled, another_job]
#: The outcome that an attempt row of the lost token tells; saying the same again is no news.
STANDS = {recovered: End.EXPIRED, claimed_again: End.EXPIRED, cancelled: End.CANCELLED}


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request: pytest.FixtureRequest) -> Way:
    """How the lease is gone."""
    return request.param


@pytest.fixture
def gone(connection: BaseDatabaseWrapper, way: Way) -> Lease:
    """The lease of a job that this worker holds no more."""
    (job,) = running(connection)
    return way(connection, job)


@pytest.fixture
def unchanged(connection: BaseDatabaseWrapper, gone: Lease):
    """Compares every row before and after the test."""
    before = snapshot(connection)
    yield
    assert snapshot(connection) == before
    assert reports() == []


def after_a_report(connection: BaseDatabaseWrapper, work: Callable[[CursorWrapper], None]) -> None:
    """Write a business row, then do `work`, in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        make_report()
        work(cursor)


# Every writing function --------------------------------------------------------------------------


@pytest.mark.usefixtures("unchanged")
def test_renew(connection, gone):
    renewal = renew(connection, [gone], 60)
    assert (renewal.renewed, renewal.lost, renewal.pending) == ((), (gone,), ())


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("outcome", ENDS.values(), ids=ENDS)
def test_settle(connection, gone, way, outcome):
    (settled,) = settle(connection, [Ending(gone, outcome)])
    stands = STANDS.get(way) is outcome.end
    assert settled.verdict is (Verdict.SETTLED if stands else Verdict.LOST)
    assert settled.status is None


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("prolong", [True, False])
def test_hold_within_a_transaction(connection, gone, prolong):
    def work(cursor: CursorWrapper) -> None:
        if prolong:
            hold_within(connection, cursor, gone, 60)
        else:
            lock_within(connection, gone)

    with pytest.raises(LeaseLost):
        after_a_report(connection, work)


@pytest.mark.usefixtures("unchanged")
def test_save_a_checkpoint(connection, gone):
    def work(cursor: CursorWrapper) -> None:
        save_checkpoint(connection, cursor, gone, '{"a":1}', 60)

    with pytest.raises(LeaseLost):
        after_a_report(connection, work)
    with connection.cursor() as cursor, pytest.raises(LeaseLost):
        work(cursor)


@pytest.mark.usefixtures("unchanged")
def test_save_progress(connection, gone):
    save_progress(connection, {gone: '{"fraction":0.5,"text":""}'})
    other = Lease(gone.job_id + 10**6, gone.token)
    save_progress(connection, {gone: "null", other: "null"})


@pytest.mark.usefixtures("unchanged")
def test_finish_within_a_transaction(connection, gone):
    def work(cursor: CursorWrapper) -> None:
        finish_within(connection, cursor, gone, Outcome(End.COMPLETED, result='{"a":1}'))

    with pytest.raises(LeaseLost):
        after_a_report(connection, work)


# Burials -----------------------------------------------------------------------------------------


def taken_burial(connection: BaseDatabaseWrapper) -> Claimed:
    (job,) = running(connection)
    settle(connection, [Ending(job.lease, Outcome(End.REJECTED, bury=True))])
    (burial,) = take(connection, "first")
    return burial


def postpone(connection: BaseDatabaseWrapper, lease: Lease) -> bool:
    return postpone_burial(connection, lease, 5)


def take(connection: BaseDatabaseWrapper, worker: str) -> list[Claimed]:
    return take_burials(
        connection, with_hook=["arranged"], without_hook=[], worker=worker, seconds=60
    )


def end_by_stale_token(connection: BaseDatabaseWrapper, burial: Claimed) -> Lease:
    return stale_token(connection, burial)


def end_by_expiry(connection: BaseDatabaseWrapper, burial: Claimed) -> Lease:
    expire(connection, burial.job_id)
    return burial.lease


def end_by_another_worker(connection: BaseDatabaseWrapper, burial: Claimed) -> Lease:
    expire(connection, burial.job_id)
    assert len(take(connection, "rival")) == 1
    return burial.lease


def end_by_cancel(connection: BaseDatabaseWrapper, burial: Claimed) -> Lease:
    assert cancel(burial.job_id) == [burial.job_id]
    return burial.lease


@pytest.mark.parametrize(
    "how", [end_by_stale_token, end_by_expiry, end_by_another_worker, end_by_cancel]
)
@pytest.mark.parametrize("write_end", [close_burial, postpone])
def test_burials(connection, how, write_end):
    lease = how(connection, taken_burial(connection))
    before = snapshot(connection)
    assert write_end(connection, lease) is False
    assert snapshot(connection) == before


# Whoever does hold the lease is not refused -------------------------------------------------------


def test_the_holder_may(connection):
    (job,) = running(connection)
    shift(connection, job.job_id, "lease_until", 5)
    assert renew(connection, [job.lease], 60).renewed == (job.lease,)
    (settled,) = settle(connection, [Ending(job.lease, Outcome(End.COMPLETED))])
    assert settled.verdict is Verdict.SETTLED


def test_a_lease_is_used_once(connection):
    (job,) = running(connection)
    assert settle(connection, [Ending(job.lease, Outcome(End.FAILED))])
    before = snapshot(connection)
    (settled,) = settle(connection, [Ending(job.lease, Outcome(End.COMPLETED))])
    assert settled.verdict is Verdict.LOST
    assert snapshot(connection) == before
