"""enqueue_many: all or none, in order, in as few statements as there can be."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import transaction

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.insert import insert_one
from django_leasequeue.core.request import build_request
from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs, job
from tests.core.interleave import at_statement
from tests.faults import REPEAT, Fault, broken
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def test_nothing():
    assert enqueue_many([]) == []
    assert enqueue_many(iter(())) == []


def test_more_than_a_batch(connection):
    with count_statements(connection) as statements:
        jobs = enqueue_many(("t", {"n": n}, {}) for n in range(2500))
    assert [made.payload["n"] for made in Job.objects.order_by("id")] == list(range(2500))
    assert [made.id for made in jobs] == sorted({made.id for made in jobs})
    assert all(made.created for made in jobs)
    assert len(statements) <= 2 + 3 * 2


def test_it_returns_jobs_in_the_order_of_the_list(connection):
    enqueue("t", key="taken")
    wishes = [
        {"key": "a"},
        {"delay": 60},
        {"key": "taken"},
        {"key": "b", "key_until": "finished"},
        {"queue": "other", "key": "a"},
        {"expires": 60, "priority": 5},
        {},
    ]
    jobs = enqueue_many([("t", {"n": n}, wish) for n, wish in enumerate(wishes)])
    assert [job(made.id).payload.get("n") for made in jobs] == [0, 1, None, 3, 4, 5, 6]
    assert [made.created for made in jobs] == [True, True, False, True, True, True, True]
    assert Job.objects.count() == 7


def test_a_key_twice_in_the_list_is_one_job():
    jobs = enqueue_many(
        [
            ("t", {"n": 0}, {"key": "k"}),
            ("t", {"n": 1}, {}),
            ("t", {"n": 2}, {"key": "k"}),
            ("t", {"n": 3}, {"key": "k", "queue": "other"}),
        ]
    )
    assert [made.created for made in jobs] == [True, True, False, True]
    assert jobs[0].id == jobs[2].id
    assert job(jobs[0].id).payload == {"n": 0}
    assert jobs[0].id < jobs[1].id < jobs[3].id


def test_a_key_for_ever_and_a_key_until_finished_are_two_keys():
    """As they are for enqueue."""
    wishes = [{"key": "k"}, {"key": "k", "key_until": "finished"}] * 2
    jobs = enqueue_many([("t", {"n": n}, wish) for n, wish in enumerate(wishes)])
    assert [made.created for made in jobs] == [True, True, False, False]
    assert [made.id for made in jobs[2:]] == [made.id for made in jobs[:2]]
    assert enqueue("t", **wishes[0]).id == jobs[0].id
    assert enqueue("t", **wishes[1]).id == jobs[1].id


def test_the_list_is_claimed_in_its_order(connection):
    jobs = enqueue_many([("t", {}, {"key": str(n % 7)}) for n in range(20)])
    expected = list(dict.fromkeys(made.id for made in jobs))
    assert [claimed.job_id for claimed in claim_jobs(connection, 20)] == expected


def test_it_goes_with_the_callers_transaction():
    with suppress(ZeroDivisionError), transaction.atomic():
        enqueue_many([("t", {}, {}), ("t", {}, {"key": "k"})])
        raise ZeroDivisionError
    assert not Job.objects.exists()


def test_on_its_own_it_is_one_transaction(connection):
    """The second batch fails: nothing of the first is left."""
    fail = at_statement(connection, "INSERT", explode, nth=2)
    with fail, pytest.raises(ZeroDivisionError):
        enqueue_many([("t", {}, {}) for _ in range(20)], batch_size=10)
    assert not Job.objects.exists()


def explode() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("options", [{"key": "k"}, {"key": "k", "key_until": "finished"}])
def test_a_key_that_is_taken_between_looking_and_inserting(connection, session, options):
    """Somebody commits the key while this call is about to insert it."""
    rival = session()
    if connection.vendor == "sqlite":
        pytest.skip("has one writer at a time")

    def take() -> None:
        insert_one(rival, build_request("t", {"by": "rival"}, **options))

    with at_statement(connection, "INSERT", take):
        jobs = enqueue_many([("t", {"n": 0}, {}), ("t", {"n": 1}, options), ("t", {"n": 2}, {})])
    assert [made.created for made in jobs] == [True, False, True]
    assert job(jobs[1].id).payload == {"by": "rival"}
    assert [job(jobs[n].id).payload["n"] for n in (0, 2)] == [0, 2]
    assert Job.objects.count() == 3


def test_a_deadlock_is_repeated(connection):
    code = REPEAT[connection.vendor][0]
    with broken(connection, Fault(code, match=lambda sql: "INSERT" in sql, times=2)) as fault:
        jobs = enqueue_many([("t", {}, {}), ("t", {}, {"key": "k"})])
    assert fault.fired == 2
    assert list(Job.objects.order_by("id")) == jobs


def test_declared_types(declare):
    @declare("many.sends", queue="mails")
    def send(to):
        pass

    jobs = send.using(priority=3).enqueue_many([{"to": 1}, {"to": 2}])
    assert [(made.queue_name, made.priority, job(made.id).payload) for made in jobs] == [
        ("mails", 3, {"to": 1}),
        ("mails", 3, {"to": 2}),
    ]
    with pytest.raises(TypeError, match=r"many\.sends"):
        send.enqueue_many([{"to": 3}, {"from": 1}])
    assert Job.objects.count() == 2
