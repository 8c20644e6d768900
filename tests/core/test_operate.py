"""What an operator does: every call returns what really changed, and history is kept."""

from __future__ import annotations

import pytest

from django_leasequeue import cancel, enqueue, requeue, reschedule
from django_leasequeue.core.bury import take_burials
from django_leasequeue.core.lease import renew
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import (
    claim_one,
    history,
    job,
    outcomes,
    running,
    shift,
    snapshot,
    write,
)
from tests.core.interleave import at_statement
from tests.faults import Rival, holding_job

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def dead(connection, count=1):
    jobs = running(connection, count)
    settle(connection, [Ending(held.lease, Outcome(End.REJECTED, bury=True)) for held in jobs])
    return [held.job_id for held in jobs]


def one_of_each(connection):
    """Return the id of a job in each status."""
    ids = {"ready": enqueue("t", queue="of each").id}
    for status, end in {
        "done": End.COMPLETED,
        "dead": End.REJECTED,
        "cancelled": End.CANCELLED,
        "parked": End.PARKED,
    }.items():
        (held,) = running(connection)
        settle(connection, [Ending(held.lease, Outcome(end))])
        ids[status] = held.job_id
    (held,) = running(connection)
    return {**ids, "reserved": held.job_id}


@pytest.mark.parametrize(
    ("operation", "statuses", "becomes"),
    [
        (cancel, {"ready", "reserved", "parked", "dead"}, "cancelled"),
        (requeue, {"dead", "cancelled"}, "ready"),
        (reschedule, {"ready"}, "ready"),
    ],
)
def test_who_is_changed_and_who_is_left_alone(connection, operation, statuses, becomes):
    ids = one_of_each(connection)
    before = {row[0]: row for row in snapshot(connection)["leasequeue_job"]}
    changed = operation([*ids.values(), 10**9])
    assert changed == sorted(ids[status] for status in statuses)
    after = {row[0]: row for row in snapshot(connection)["leasequeue_job"]}
    for status, job_id in ids.items():
        if status in statuses:
            assert job(job_id).status == becomes
        else:
            assert after[job_id] == before[job_id]
    assert operation(sorted(set(ids.values()) - set(changed))) == []


def test_ways_to_name_jobs():
    first, second = enqueue("t"), enqueue("t")
    assert reschedule(first) == reschedule(first.id) == reschedule([first]) == [first.id]
    assert reschedule(Job.objects.order_by("-id")) == [first.id, second.id]
    assert reschedule(iter([second.id, second, second.id])) == [second.id]
    assert reschedule([]) == []


# cancel ------------------------------------------------------------------------------------------


def test_cancelling_a_running_job_ends_its_lease(connection):
    (held,) = running(connection)
    assert cancel(held.job_id) == [held.job_id]
    row = job(held.job_id)
    assert (row.status, row.lease_token, row.lease_until) == ("cancelled", None, None)
    assert row.finished_at is not None
    (attempt,) = history(held.job_id)
    assert (attempt.outcome, attempt.token) == ("cancelled", held.lease.token)
    assert renew(connection, [held.lease], 60).lost == (held.lease,)
    (settled,) = settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert settled.verdict is Verdict.LOST
    assert outcomes(held.job_id) == ["cancelled"]


def test_cancelling_a_waiting_job_writes_no_attempt():
    made = enqueue("t", delay=60)
    assert cancel(made) == [made.id]
    assert history(made.id) == []


def test_cancelling_a_dead_job_calls_its_burial_off(connection):
    (job_id,) = dead(connection)
    cancel(job_id)
    assert job(job_id).lease_until is None
    burial = {"with_hook": ["arranged"], "without_hook": [], "worker": "w", "seconds": 9.0}
    assert take_burials(connection, **burial) == []


@SERVERS
def test_a_row_that_a_worker_is_just_writing_is_met_a_moment_later(connection, session):
    (held,) = running(connection)
    worker = session()
    worker.set_autocommit(False)
    settle(worker, [Ending(held.lease, Outcome(End.FAILED))])
    rival = Rival(worker.commit)
    assert cancel(held.job_id) == [held.job_id]
    rival.result()
    assert job(held.job_id).status == "cancelled"


@SERVERS
def test_a_row_that_stays_locked_is_left_out(connection, session):
    locked, free = enqueue("t"), enqueue("t")
    with holding_job(session(), locked.id):
        assert cancel([locked, free]) == [free.id]
    assert job(locked.id).status == "ready"


# requeue -----------------------------------------------------------------------------------------


def test_requeue_gives_a_fresh_allowance_and_keeps_the_history(connection):
    (job_id,) = dead(connection)
    write(connection, job_id, attempts=5, crashes=3, releases=7, bury_tries=2)
    assert requeue(job_id) == [job_id]
    row = job(job_id)
    assert (row.status, row.attempts, row.crashes, row.releases) == ("ready", 0, 0, 0)
    assert (row.bury_tries, row.lease_until, row.finished_at) == (0, None, None)
    assert row.claims == 1
    assert list(Job.objects.due()) == [row]
    held = claim_one(connection)
    assert (held.attempt, held.number) == (1, 2)
    settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert [(each.number, each.outcome) for each in history(job_id)] == [
        (1, "rejected"),
        (2, "completed"),
    ]


def test_requeue_of_what_was_scheduled_runs_now():
    made = enqueue("t", delay=3600)
    cancel(made)
    requeue(made)
    assert Job.objects.due().get() == made


def test_requeue_of_what_had_expired_runs(connection):
    """The operator wants it to run although its time was over."""
    made = enqueue("t", expires=60)
    cancel(made)
    shift(connection, made.id, "expires_at", -1)
    assert requeue(made) == [made.id]
    assert claim_one(connection).job_id == made.id


@pytest.mark.parametrize("count", [10, 450])
def test_two_operators_requeue_the_same_dead_jobs(connection, session, as_default, count):
    """Case E2: each job is requeued once, and both are told what they really did."""
    ids = dead(connection, count)
    one, other = session(), session()

    def work(own_session):
        with as_default(own_session):
            return requeue(ids)

    rivals = [Rival(lambda own=own: work(own)) for own in (one, other)]
    done = [job_id for rival in rivals for job_id in rival.result()]
    assert sorted(done) == ids
    assert set(Job.objects.values_list("status", flat=True)) == {"ready"}


@SERVERS
def test_a_second_requeue_in_the_middle_of_the_first(connection, session, as_default):
    ids = dead(connection, 4)
    rival, seen = session(), []

    def meanwhile() -> None:
        with as_default(rival):
            seen.extend(requeue(ids[:2]))

    with at_statement(connection, "^COMMIT$", meanwhile) as reached:
        assert requeue(ids) == ids
    assert reached
    assert seen == []
    assert {job(job_id).status for job_id in ids} == {"ready"}


def test_a_requeued_job_that_runs_by_now_is_not_requeued_again(connection):
    (job_id,) = dead(connection)
    requeue(job_id)
    claim_one(connection)
    before = snapshot(connection)
    assert requeue(job_id) == []
    assert snapshot(connection) == before


@pytest.mark.parametrize("operation", [cancel, requeue, reschedule])
def test_inside_the_callers_transaction(connection, operation):
    from django.db import transaction

    ids = one_of_each(connection)
    before = snapshot(connection)
    with transaction.atomic():
        assert operation(ids.values())
        transaction.set_rollback(True)
    assert snapshot(connection) == before
    with transaction.atomic():
        changed = operation(ids.values())
    assert changed
    assert snapshot(connection) != before
