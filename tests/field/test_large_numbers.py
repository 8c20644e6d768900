"""A21: ids beyond 32 bits, hundreds of attempts, delays and limits of weeks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from django_leasequeue import enqueue, prune, requeue
from django_leasequeue.core.effects import claim_effect
from django_leasequeue.core.lease import hold_within, renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job, JobAttempt, JobEffect
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, expire, outcomes, run, write

LAST = 2**31 - 1
FORTY_DAYS = 40 * 86_400.0
TABLES = ("leasequeue_job", "leasequeue_jobattempt", "leasequeue_jobeffect")
SET_COUNTER = {
    "mysql": "ALTER TABLE {} AUTO_INCREMENT = {}",
    "postgresql": "ALTER TABLE {} ALTER COLUMN id RESTART WITH {}",
}


@pytest.fixture
def counters(connection):
    """The counters of ids, a step before the end of 32 bits; SQLite's follow the largest row."""

    def set_to(number: int) -> None:
        for table in TABLES:
            if sql := SET_COUNTER.get(connection.vendor):
                run(connection, sql.format(table, number))

    set_to(LAST)
    if connection.vendor == "sqlite":
        run(
            connection,
            "INSERT INTO leasequeue_job (id, job_type, status) VALUES (%s, 't', 'done')",
            [LAST - 1],
        )
        for table, columns, values in (
            ("leasequeue_jobattempt", "job_id, number, token, outcome", "1, 1, 't', 'failed'"),
            ("leasequeue_jobeffect", "job_id, name", "1, 'e'"),
        ):
            run(connection, f"INSERT INTO {table} (id, {columns}) VALUES ({LAST - 1}, {values})")
    yield
    for model in (JobEffect, JobAttempt, Job):
        model._default_manager.all().delete()
    set_to(1)


def test_ids_go_on_beyond_32_bits(connection, counters):
    ids = [enqueue("arranged", {"n": n}).id for n in range(3)]
    assert ids == [LAST, LAST + 1, LAST + 2]
    for end in (End.COMPLETED, End.FAILED, End.REJECTED):
        job = claim_one(connection)
        with transaction.atomic(), connection.cursor() as cursor:
            hold_within(connection, cursor, job.lease, 60)
            assert claim_effect(connection, cursor, job.job_id, "charge", job.number)
        assert renew(connection, [job.lease], 60).renewed
        settle(connection, [Ending(job.lease, Outcome(end))])
    for model in (JobAttempt, JobEffect):
        rows = model._default_manager.filter(id__gte=LAST).order_by("id")
        assert list(rows.values_list("id", "job_id")) == list(zip(ids, ids, strict=True))
    assert requeue(ids) == [ids[2]]
    assert prune(older_than=0).jobs >= 1


@pytest.mark.parametrize("end", [End.FAILED, End.TIMED_OUT, End.CRASHED, End.SNOOZED, End.EXPIRED])
def test_hundreds_of_attempts_and_weeks_of_delay(connection, end):
    job_id = enqueue("arranged", max_attempts=32_767, timeout=FORTY_DAYS).id
    write(connection, job_id, attempts=300, claims=300, max_crashes=32_767, crashes=299)
    job = claim_one(connection)
    assert (job.attempt, job.number, job.timeout) == (301, 301, FORTY_DAYS)
    if end is End.EXPIRED:
        expire(connection, job_id)
        assert len(recover_batch(connection)) == 1
    else:
        settle(connection, [Ending(job.lease, Outcome(end, delay=FORTY_DAYS))])
    row = Job.objects.get(pk=job_id)
    assert (row.status, outcomes(job_id)) == ("ready", [end.value])
    if end is not End.EXPIRED:
        assert row.available_at - row.updated_at > timedelta(seconds=FORTY_DAYS - 60)


def test_the_last_attempt_of_all(connection):
    job_id = enqueue("arranged", max_attempts=32_767).id
    write(connection, job_id, attempts=32_766, claims=2**31 - 2, releases=19)
    settle(connection, [Ending(claim_one(connection).lease, Outcome(End.FAILED))])
    row = Job.objects.get(pk=job_id)
    assert (row.status, row.attempts, row.claims) == ("dead", 32_767, 2**31 - 1)
