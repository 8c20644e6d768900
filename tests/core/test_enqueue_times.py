"""When a job may run, and until when, whatever USE_TZ and TIME_ZONE say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from django_leasequeue import EnqueueError, enqueue, reschedule
from django_leasequeue.models import Job
from django_leasequeue.retry import MAX_DELAY
from tests.core.arrange import claim_jobs, job

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

MOMENT = datetime(2042, 1, 31, 23, 59, 59, 123456, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))


@pytest.fixture(params=[(True, "UTC"), (True, "America/New_York"), (False, "Asia/Kathmandu")])
def zone(request, settings, connection):
    """Every way a project may have set its time zone."""
    settings.USE_TZ, settings.TIME_ZONE = request.param
    connection.close()
    yield request.param
    connection.close()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("moment", [MOMENT, MOMENT.astimezone(TOKYO)])
def test_an_aware_moment_is_that_moment(moment):
    made = enqueue("t", run_after=moment, expires=moment + timedelta(days=1))
    row = job(made.id)
    assert row.available_at == MOMENT
    assert row.expires_at == MOMENT + timedelta(days=1)
    assert row.available_at.tzinfo is UTC


def test_a_naive_moment_is_in_the_projects_zone(zone):
    naive = datetime(2042, 7, 1, 12, 0)  # noqa: DTZ001  (on purpose)
    if zone[0]:
        with pytest.raises(EnqueueError, match="time zone"):
            enqueue("t", run_after=naive)
        return
    made = enqueue("t", run_after=naive, expires=naive)
    moment = datetime(2042, 7, 1, 6, 15, tzinfo=UTC)
    assert job(made.id).available_at == job(made.id).expires_at == moment


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("delay", [90, 90.0, timedelta(seconds=90)])
def test_a_delay_counts_from_now(delay):
    row = job(enqueue("t", delay=delay).id)
    assert 89 < (row.available_at - row.created_at).total_seconds() < 91
    assert list(Job.objects.scheduled()) == [row]
    assert abs((row.created_at - datetime.now(UTC)).total_seconds()) < 5


@pytest.mark.usefixtures("zone")
def test_only_what_is_due_is_claimed(connection):
    due = enqueue("t")
    enqueue("t", delay=60)
    enqueue("t", run_after=MOMENT)
    overdue = enqueue("t", run_after=datetime(2001, 1, 1, tzinfo=UTC))
    assert [claimed.job_id for claimed in claim_jobs(connection, 9)] == [overdue.id, due.id]


@pytest.mark.usefixtures("zone")
def test_what_expired_is_cancelled_at_the_claim(connection):
    gone, stays = enqueue("t", expires=0), enqueue("t", expires=60)
    assert [claimed.job_id for claimed in claim_jobs(connection, 9)] == [stays.id]
    row = job(gone.id)
    assert (row.status, row.claims, row.attempts) == ("cancelled", 0, 0)
    assert row.last_error == "Expired before it was claimed"
    assert row.finished_at is not None


@pytest.mark.parametrize("delay", [timedelta.max, 1e400, 10**400])
def test_the_longest_delay_is_cut(delay):
    row = job(enqueue("t", delay=delay).id)
    assert abs((row.available_at - row.created_at).total_seconds() - MAX_DELAY) < 5


@pytest.mark.usefixtures("zone")
def test_reschedule():
    made = enqueue("t", delay=3600)
    assert reschedule(made, run_after=MOMENT) == [made.id]
    assert job(made.id).available_at == MOMENT
    assert reschedule(made, delay=60) == [made.id]
    assert 55 < (job(made.id).available_at - datetime.now(UTC)).total_seconds() < 65
    assert reschedule(made) == [made.id]
    assert Job.objects.due().exists()
    with pytest.raises(EnqueueError):
        reschedule(made, delay=-1)
