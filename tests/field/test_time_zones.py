"""Every time is right to the second, wherever server, sessions and project think they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from django_leasequeue import EnqueueError, Fixed, enqueue
from django_leasequeue.core.lease import renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, expire, history, job, outcomes
from tests.faults.zones import COMBINATIONS, Zones, in_zones, seconds_ahead
from tests.field.workers import drain
from tests.process.rows import insert_fixture

ABROAD = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")


@pytest.fixture(params=COMBINATIONS, ids=str, autouse=True)
def zones(request, connection, settings) -> Zones:
    """H1, H2: the combinations; SQLite has no server that could differ."""
    if connection.vendor == "sqlite" and request.param.server != COMBINATIONS[0].server:
        pytest.skip("SQLite has no sessions with a zone")
    with in_zones(request.param, settings):
        yield request.param


def is_ahead(connection, job_id: int, column: str, seconds: float) -> bool:
    """Tell whether a job's time is `seconds` from now, in the table and through the model."""
    stored = seconds_ahead(connection, "leasequeue_job", column, job_id)
    value = getattr(job(job_id), column)
    assert value.utcoffset() == timedelta(0)
    read = (value - datetime.now(UTC)).total_seconds()
    return abs(stored - seconds) < 1 and abs(read - seconds) < 1


def test_now_and_delays(connection):
    job_id = enqueue("t", delay=90, expires=3600).id
    assert is_ahead(connection, job_id, "available_at", 90)
    assert is_ahead(connection, job_id, "expires_at", 3600)
    assert is_ahead(connection, job_id, "created_at", 0)
    assert claim_jobs(connection) == []
    assert is_ahead(connection, enqueue("t").id, "available_at", 0)


@pytest.mark.parametrize("zone", ABROAD)
def test_aware_moments(connection, zone):
    moment = datetime.now(ZoneInfo(zone)) + timedelta(seconds=90)
    job_id = enqueue("t", run_after=moment, expires=moment + timedelta(hours=1)).id
    assert is_ahead(connection, job_id, "available_at", 90)
    assert is_ahead(connection, job_id, "expires_at", 90 + 3600)
    assert job(job_id).available_at == moment
    assert list(Job.objects.filter(available_at=moment)) == [job(job_id)]


def test_naive_moments(connection, zones):
    """H2: in the project's own zone, or refused in words."""
    local = datetime.now(ZoneInfo(zones.time_zone)).replace(tzinfo=None)
    moment = local + timedelta(seconds=90)
    if zones.use_tz:
        with pytest.raises(EnqueueError, match="no time zone"):
            enqueue("t", run_after=moment)
        return
    job_id = enqueue("t", run_after=moment).id
    assert is_ahead(connection, job_id, "available_at", 90)
    assert abs(timezone.now() - local) < timedelta(seconds=60)


@pytest.mark.leaves_reserved
@pytest.mark.parametrize(("seconds", "due"), [(-1, True), (30, False)])
def test_only_what_is_due_is_claimed(connection, seconds, due):
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    job_id = enqueue("t", run_after=moment).id
    assert [claimed.job_id for claimed in claim_jobs(connection)] == [job_id] * due


def test_leases_and_backoff(connection):
    job_id = enqueue("t").id
    claimed = claim_one(connection, lease=20)
    assert claimed.enqueued_at == job(job_id).created_at
    assert is_ahead(connection, job_id, "claimed_at", 0)
    assert is_ahead(connection, job_id, "lease_until", 20)
    assert renew(connection, [claimed.lease], 50).renewed
    assert is_ahead(connection, job_id, "lease_until", 50)
    assert recover_batch(connection) == []
    (settled,) = settle(connection, [Ending(claimed.lease, Outcome(End.FAILED, delay=70))])
    assert settled.verdict is Verdict.SETTLED
    assert is_ahead(connection, job_id, "available_at", 70)
    (attempt,) = history(job_id)
    for column in ("started_at", "finished_at"):
        ahead = seconds_ahead(connection, "leasequeue_jobattempt", column, attempt.pk)
        assert abs(ahead) < 1
        assert abs(getattr(attempt, column) - datetime.now(UTC)) < timedelta(seconds=1)


def test_recovery(connection):
    job_id = enqueue("t").id
    claimed = claim_one(connection)
    assert recover_batch(connection) == []
    expire(connection, job_id)
    assert [entry.job_id for entry in recover_batch(connection)] == [job_id]
    assert not renew(connection, [claimed.lease], 60).renewed
    assert is_ahead(connection, job_id, "available_at", 0)


def test_plain_sql_from_any_session(connection):
    """The column defaults count in UTC, too; this session's zone is the driver's own default."""
    job_id = insert_fixture(connection, "t", "", 3)
    assert is_ahead(connection, job_id, "available_at", 0)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO leasequeue_job (queue_name, job_type, payload, idempotency_key)"
            " VALUES ('reports', 't', '{}', 'from a session with another zone')"
        )
    for stored in Job.objects.all():
        for column in ("created_at", "updated_at", "available_at"):
            assert is_ahead(connection, stored.pk, column, 0)
    drained = []
    while batch := claim_jobs(connection, 10):
        drained += batch
        settle(connection, [Ending(one.lease, Outcome(End.COMPLETED)) for one in batch])
    assert len(drained) == 2


def test_a_worker_drains_retries_and_completes(connection, declare):
    @declare("twice", takes_context=True, backoff=Fixed(0.3))
    def handler(context):
        seen.append((context.enqueued_at, context.leased_until))
        if context.attempt == 1:
            raise ValueError

    seen: list[tuple[datetime, datetime]] = []
    job_id = enqueue("twice").id
    drain()
    first, second = history(job_id)
    assert outcomes(job_id) == ["failed", "completed"]
    waited = (second.started_at - first.finished_at).total_seconds()
    assert 0.3 <= waited < 5
    for enqueued_at, leased_until in seen:
        assert abs(enqueued_at - datetime.now(UTC)) < timedelta(seconds=10)
        assert timedelta(seconds=40) < leased_until - datetime.now(UTC) <= timedelta(seconds=60)
