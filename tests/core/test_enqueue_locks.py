"""A slow web request that enqueues a duplicate never starves the job that runs under that key.

Its transaction stays open here while the job's worker renews, completes and settles.
"""

from __future__ import annotations

import secrets

import pytest
from django.db import transaction

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.lease import renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, expire, job, running
from tests.core.reports import make_report, reports
from tests.faults import Rival, holding_job, session_id, wait_blocked

pytestmark = [
    pytest.mark.usefixtures("connection"),
    pytest.mark.leaves_reserved,
    pytest.mark.only_on("mariadb", "mysql", "postgres"),
]
KEYS = [{"key": "k"}, {"key": "k", "key_until": "finished"}]
WAYS = {
    "enqueue": lambda options: enqueue("t", {}, **options),
    "enqueue_many": lambda options: enqueue_many([("t", {}, {}), ("t", {}, options)]),
    "replace": lambda options: enqueue("t", {}, on_conflict="replace", **options),
}


@pytest.fixture(params=KEYS, ids=["forever", "finished"])
def options(request):
    # A key of no other test: InnoDB locks more around a deleted row that is not purged yet.
    return {**request.param, "key": secrets.token_hex()}


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture
def duplicate(way, options):
    return lambda: WAYS[way](options)


@pytest.fixture(params=[None, "repeatable"], ids=["as set", "repeatable read"])
def web(request, session):
    """The session of a web request, in the isolation level of its project."""
    return session(request.param)


@pytest.fixture
def worker(session):
    """A worker's session, that gives up on a lock within a second."""
    connection = session("read")
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        else:
            cursor.execute("SET lock_timeout = 1000")
    return connection


def test_a_running_job_is_renewed_and_settled(worker, web, as_default, options, duplicate):
    enqueue("t", **options)
    held = claim_one(worker)
    with as_default(web), transaction.atomic():
        duplicate()
        assert renew(worker, [held.lease], 60).renewed == (held.lease,)
        (settled,) = settle(worker, [Ending(held.lease, Outcome(End.FAILED))])
        assert settled.verdict is Verdict.SETTLED
    assert job(held.job_id).status == "ready"


def test_a_running_job_is_done(worker, web, as_default, options, duplicate):
    enqueue("t", **options)
    held = claim_one(worker)
    with as_default(web), transaction.atomic():
        duplicate()
        (settled,) = settle(worker, [Ending(held.lease, Outcome(End.COMPLETED))])
        assert settled.verdict is Verdict.SETTLED
    assert job(held.job_id).status == "done"


def test_a_key_that_a_snapshot_shows_as_taken_is_free(worker, web, as_default, duplicate, options):
    """The job finished after the web request's first read: the new one must not be lost."""
    first = enqueue("t", **options)
    held = claim_one(worker)
    with as_default(web), transaction.atomic():
        assert job(first.id).status == "reserved"  # the snapshot
        settle(worker, [Ending(held.lease, Outcome(End.COMPLETED))])
        made = duplicate()
        made = made[-1] if isinstance(made, list) else made
    assert made.created is ("key_until" in options)
    assert job(made.id).status == ("ready" if made.created else "done")


def test_a_key_of_the_transaction_itself_is_taken(web, as_default, options, duplicate):
    """Nobody else sees that job yet."""
    with as_default(web), transaction.atomic():
        first = enqueue("t", **options)
        made = duplicate()
        made = made[-1] if isinstance(made, list) else made
    assert (made.id, made.created) == (first.id, False)


def test_other_producers_do_not_wait(worker, web, as_default, options, duplicate):
    """InnoDB locks the gap before a duplicate as well, where other keys want to be inserted."""
    enqueue("t", **options)
    with as_default(web), transaction.atomic():
        duplicate()
        with as_default(worker):
            for _ in range(30):
                # Keys of no other test: InnoDB locks more around a deleted row not yet purged.
                key = secrets.token_hex()
                assert enqueue("t").created
                assert enqueue("t", key=key).created
                assert enqueue("t", key=key, key_until="finished").created


def test_a_ready_job_is_claimed(worker, web, as_default, options, duplicate, way):
    """But for one that is replaced, which is claimed as it was, or as it will be."""
    made = enqueue("t", **options)
    with as_default(web), transaction.atomic():
        duplicate()
        free = [] if way == "replace" else [made.id]
        assert [held.job_id for held in claim_jobs(worker, 5)] == free


def test_a_job_being_claimed_is_not_waited_for(worker, web, as_default, options):
    """Its lock, once the claim has let go, would be that of a running job."""
    first = enqueue("t", **options)
    with as_default(web), transaction.atomic():
        with holding_job(worker, first.id):
            made = enqueue("t", on_conflict="replace", **options)
        assert (made.id, made.created, made.replaced) == (first.id, False, False)
        held = claim_one(worker)
        assert renew(worker, [held.lease], 60).renewed == (held.lease,)


@pytest.mark.only_on("mariadb", "mysql")
def test_a_running_job_that_a_snapshot_shows_as_ready_is_not_locked(
    worker, web, as_default, options
):
    first = enqueue("t", **options)
    with as_default(web), transaction.atomic():
        assert job(first.id).status == "ready"  # the snapshot
        held = claim_one(worker)
        assert not enqueue("t", on_conflict="replace", **options).replaced
        assert renew(worker, [held.lease], 60).renewed == (held.lease,)


def test_an_expired_lease_is_recovered(worker, web, as_default, options, duplicate):
    enqueue("t", **options)
    held = claim_one(worker)
    expire(worker, held.job_id)
    with as_default(web), transaction.atomic():
        duplicate()
        assert [found.job_id for found in recover_batch(worker)] == [held.job_id]


def test_a_handler_completes(declare, attempt, web, as_default, connection, options, duplicate):
    @declare("t", takes_context=True)
    def handler(context):
        with context.complete():
            make_report()

    enqueue("t", **options)
    held = claim_one(connection)
    with as_default(web), transaction.atomic():
        duplicate()
        assert attempt(held).settled
    assert reports() == ["k"]


def test_a_key_inserted_by_an_open_transaction_makes_the_caller_wait(
    connection, session, db_kind, as_default, options
):
    """Documented: whether the key is taken is not known before that transaction has ended."""
    web = session()
    number = session_id(web, db_kind)

    def ask():
        with as_default(web):
            return enqueue("t", {"from": "second"}, **options)

    with transaction.atomic():
        first = enqueue("t", {"from": "first"}, **options)
        second = Rival(ask)
        wait_blocked(session(), db_kind, number)
        assert not second.ended
    assert second.result().id == first.id
    assert not second.result().created
    assert running(connection, 1, queue="other")
