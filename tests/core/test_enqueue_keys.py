"""Keys: one job for one key, the same id for everybody who asks again."""

from __future__ import annotations

import hashlib

import pytest
from django.db import transaction
from django.db.models import UniqueConstraint

from django_leasequeue import KeyTaken, cancel, enqueue, requeue
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, job, shift, snapshot, write
from tests.core.reports import make_report, reports
from tests.faults import Fault, broken, codes_for

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

FINISHED = {"key": "k", "key_until": "finished"}


def finish(connection, end: End) -> None:
    (settled,) = settle(connection, [Ending(claim_one(connection).lease, Outcome(end))])
    assert settled.status is not None


def test_a_taken_key_returns_the_job_that_has_it():
    first = enqueue("t", {"n": 1}, key="k")
    second = enqueue("other", {"n": 2}, key="k", priority=5, max_attempts=9)
    assert (first.created, second.created) == (True, False)
    assert first.id == second.id
    row = job(first.id)
    assert (row.job_type, row.payload, row.priority, row.max_attempts) == ("t", {"n": 1}, 0, 5)


@pytest.mark.parametrize("options", [{"key": "k"}, FINISHED])
def test_inside_a_transaction_with_other_writes(options):
    """Case C9: the caller's transaction is none the worse for it."""
    taken = enqueue("t", **options)
    with transaction.atomic():
        make_report("before")
        assert enqueue("t", **options).id == taken.id
        make_report("after")
        enqueue("t", key="another")
    assert reports() == ["after", "before"]
    assert Job.objects.count() == 2


def test_twice_in_one_transaction():
    with transaction.atomic():
        first, second = enqueue("t", key="k"), enqueue("t", key="k")
    assert first.id == second.id
    assert not second.created


def test_a_key_belongs_to_its_queue():
    assert enqueue("t", key="k", queue="a").id != enqueue("t", key="k", queue="b").id


def test_the_key_comes_first_in_its_index():
    """With stale statistics PostgreSQL takes an index that begins with the queue for any look."""
    unique = [one for one in Job._meta.constraints if isinstance(one, UniqueConstraint)]
    assert {one.name: one.fields for one in unique} == {
        "leasequeue_job_key": ("idempotency_key", "queue_name"),
        "leasequeue_job_live": ("live_key", "queue_name"),
    }


def test_only_a_digest_of_the_key_is_stored(connection):
    secret = "monthly-report:acme:2042-01"
    made = enqueue("t", key=secret)
    enqueue("t", key=f"{secret}!", key_until="finished")
    assert job(made.id).idempotency_key == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in repr(snapshot(connection))


def test_without_a_key_every_job_has_a_random_one():
    keys = {enqueue("t").idempotency_key for _ in range(3)}
    assert len(keys) == 3
    assert all(len(key) == 64 for key in keys)


@pytest.mark.parametrize("end", [End.COMPLETED, End.REJECTED, End.CANCELLED])
def test_forever_is_for_ever(connection, end):
    made = enqueue("t", key="k")
    finish(connection, end)
    assert enqueue("t", key="k").id == made.id


# key_until="finished" ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", [End.COMPLETED, End.SKIPPED, End.REJECTED, End.CANCELLED])
def test_finished_frees_the_key(connection, end):
    made = enqueue("t", **FINISHED)
    assert enqueue("t", **FINISHED).id == made.id
    finish(connection, end)
    assert job(made.id).live_key is None
    again = enqueue("t", **FINISHED)
    assert again.created
    assert again.id != made.id


@pytest.mark.parametrize("end", [End.FAILED, End.RELEASED, End.SNOOZED, End.PARKED])
def test_a_job_that_goes_on_keeps_its_key(connection, end):
    made = enqueue("t", **FINISHED)
    finish(connection, end)
    assert enqueue("t", **FINISHED).id == made.id


def test_cancelled_before_it_ran_frees_the_key():
    made = enqueue("t", **FINISHED)
    cancel(made)
    assert enqueue("t", **FINISHED).created


def test_used_up_or_expired_at_the_claim_frees_the_key(connection):
    used_up = enqueue("t", **FINISHED)
    write(connection, used_up.id, attempts=5)
    expired = enqueue("t", key="other", key_until="finished", expires=60)
    shift(connection, expired.id, "expires_at", -1)
    assert claim_jobs(connection, 5) == []
    assert {job(used_up.id).status, job(expired.id).status} == {"dead", "cancelled"}
    assert enqueue("t", **FINISHED).created
    assert enqueue("t", key="other", key_until="finished").created


def test_requeue_wins_the_key_back():
    made = enqueue("t", **FINISHED)
    cancel(made)
    assert requeue(made) == [made.id]
    assert enqueue("t", **FINISHED).id == made.id


def test_requeue_is_refused_while_another_live_job_has_the_key():
    old, free = enqueue("t", **FINISHED), enqueue("t", key="free", key_until="finished")
    cancel([old, free])
    new = enqueue("t", **FINISHED)
    assert requeue([old, free]) == [free.id]
    assert (job(old.id).status, job(new.id).status) == ("cancelled", "ready")
    cancel(new)
    assert requeue(old) == [old.id]


def test_two_dead_jobs_of_one_key_are_requeued_one_at_a_time():
    first = enqueue("t", **FINISHED)
    cancel(first)
    second = enqueue("t", **FINISHED)
    cancel(second)
    assert requeue([first, second]) == [first.id]


# on_conflict -------------------------------------------------------------------------------------


def test_raise_names_the_job_that_has_the_key():
    made = enqueue("t", key="k", on_conflict="raise")
    with pytest.raises(KeyTaken, match=f"job {made.id}") as caught:
        enqueue("t", key="k", on_conflict="raise")
    assert caught.value.job_id == made.id


@pytest.mark.parametrize("options", [{"key": "k"}, FINISHED])
def test_replace_changes_a_job_that_is_still_ready(options):
    made = enqueue("t", {"n": 1}, delay=3600, expires=7200, timeout=5, **options)
    again = enqueue("u", {"n": 2}, on_conflict="replace", priority=9, max_attempts=2, **options)
    assert (again.created, again.replaced) == (False, True)
    assert (again.id, again.created) == (made.id, False)
    row = job(made.id)
    assert (row.job_type, row.payload, row.priority, row.max_attempts) == ("u", {"n": 2}, 9, 2)
    assert (row.expires_at, row.timeout) == (None, None)
    assert list(Job.objects.due()) == [row]


def test_replace_leaves_a_running_job_alone(connection):
    made = enqueue("t", {"n": 1}, key="k")
    claim_one(connection)
    before = snapshot(connection)
    again = enqueue("t", {"n": 2}, key="k", on_conflict="replace")
    assert (again.id, again.created, again.replaced) == (made.id, False, False)
    assert snapshot(connection) == before


def test_replace_repeats_its_last_look(connection):
    """It asks whether the job that it could not replace still has the key: a read as any other."""
    made = enqueue("t", **FINISHED)
    claim_one(connection)
    codes = codes_for(connection)
    for code in codes:
        fault = Fault(code, match=lambda sql: "SELECT live_key FROM" in sql)
        with broken(connection, fault):
            again = enqueue("t", on_conflict="replace", **FINISHED)
        assert (fault.fired, again.id, again.created) == (1, made.id, False)
