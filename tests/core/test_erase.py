"""erase(): what finished jobs were told and told is gone, the rows are not."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue, erase, requeue
from django_leasequeue.core.bury import take_burials
from django_leasequeue.core.checkpoint import save_checkpoint
from django_leasequeue.core.progress import save_progress
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from tests.core.arrange import history, job, running, snapshot, write

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

ERROR = ErrorSummary("JobError", "JobError: secret", ("jobs.py:1 f",), "f" * 16)


def finished(connection, end=End.COMPLETED, **options):
    """Return the id of a job that ended so, full of secrets."""
    (held,) = running(connection, **options)
    with connection.cursor() as cursor:
        save_checkpoint(connection, cursor, held.lease, '"secret"', 60)
    save_progress(connection, {held.lease: '{"fraction": null, "text": "secret"}'})
    write(connection, held.job_id, context='{"user": "secret"}', signature="secret")
    error = None if end is End.COMPLETED else ERROR
    outcome = Outcome(end, result='"secret"', error=error, bury=True, reason="secret")
    settle(connection, [Ending(held.lease, outcome)])
    return held.job_id


@pytest.mark.parametrize("end", [End.COMPLETED, End.REJECTED, End.CANCELLED, End.SKIPPED])
def test_what_goes_and_what_stays(connection, end):
    job_id = finished(connection, end, key="k")
    before = job(job_id)
    assert erase(job_id) == [job_id]
    row = job(job_id)
    assert (row.payload, row.context, row.signature, row.last_error) == ({}, {}, "", "")
    assert (row.result, row.checkpoint, row.progress) == (None, None, None)
    stays = "status job_type queue_name idempotency_key attempts claims fingerprint finished_at"
    for name in stays.split():
        assert getattr(row, name) == getattr(before, name)
    (attempt,) = history(job_id)
    assert (attempt.error_text, attempt.outcome) == ("", end.value)
    assert "secret" not in str(snapshot(connection))


def test_unfinished_jobs_are_left_alone(connection):
    ready, parked = enqueue("t", {"a": 1}, queue="elsewhere"), enqueue("t", queue="elsewhere")
    write(connection, parked.id, status="parked")
    (held,) = running(connection)
    before = snapshot(connection)
    assert erase([ready.id, parked.id, held.job_id, 10**9]) == []
    assert snapshot(connection) == before


def test_only_those_named(connection):
    first, second = finished(connection), finished(connection)
    assert erase([second]) == [second]
    assert (job(first).result, history(first)[0].error_text) == ("secret", "secret")
    assert erase([first, second]) == [first, second]


def test_a_dead_job_is_not_buried_without_its_payload(connection):
    job_id = finished(connection, End.REJECTED)
    erase(job_id)
    taken = take_burials(
        connection, with_hook=["arranged"], without_hook=[], worker="w", seconds=60
    )
    assert (taken, job(job_id).lease_until) == ([], None)


def test_a_burial_under_way_is_called_off(connection):
    job_id = finished(connection, End.REJECTED)
    take_burials(connection, with_hook=["arranged"], without_hook=[], worker="w", seconds=60)
    erase(job_id)
    assert (job(job_id).lease_until, job(job_id).lease_token) == (None, None)


def test_a_job_may_be_requeued_with_another_payload(connection):
    job_id = finished(connection, End.REJECTED)
    erase(job_id)
    assert requeue(job_id, payload={"n": 3}) == [job_id]
    assert job(job_id).payload == {"n": 3}
