"""Renewal: no single error ends it, and what cannot be renewed is given up, locally and in time."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import InterfaceError

from django_leasequeue import Fixed, LeaseLost, enqueue
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import trouble
from django_leasequeue.core.transaction import TRIES
from django_leasequeue.models import Job
from tests.core.arrange import job, outcomes
from tests.core.reports import make_report, reports
from tests.faults import Fault, broken_everywhere, holding_job, make_error, watching
from tests.field.workers import working
from tests.waiting import wait_until

LOST_SESSION = {"mysql": 2006, "postgresql": "08006", "sqlite": "database is locked"}


def ran_out(job_id: int) -> bool:
    return Job.objects.filter(pk=job_id, lease_until__lte=UtcNow()).exists()


def outlast(job_id: int) -> None:
    """Go on until the lease has run out, though the worker's interrupt comes before that.

    Not in the middle of a statement, which would leave the session unfit for the next.
    """
    with suppress(LeaseLost):
        wait_until(lambda: None, timeout=20)
    wait_until(lambda: ran_out(job_id))


def renewing(sql: str) -> bool:
    return "leasequeue:renew" in sql


@pytest.mark.parametrize(
    "error",
    [
        pytest.param("session", id="OperationalError 2006"),
        pytest.param(InterfaceError(0, ""), id="InterfaceError"),
        pytest.param(ValueError("driver"), id="ValueError"),
    ],
)
def test_a_beat_that_fails_is_followed_by_one_on_a_fresh_connection(
    connection, declare, short_leases, error
):
    """B9: the renewal raises once; the thread lives, and the lease is prolonged all the same."""
    code = LOST_SESSION[connection.vendor] if error == "session" else error
    # What the core repeats by itself comes often enough to be past its patience.
    times = TRIES if trouble(connection, make_error(connection, code)) else 1
    deadlines = []

    @declare("beating", takes_context=True)
    def handler(context):
        deadlines.append(job(context.job_id).lease_until)
        moments.wait("renewal_failed")
        moments.wait("leases_renewed", count=2)
        deadlines.append(job(context.job_id).lease_until)

    job_id = enqueue("beating").id
    fault = Fault(code, match=renewing, times=times)
    with watching() as moments, broken_everywhere(fault), working():
        moments.wait("job_completed", job_id=job_id)
    assert fault.fired == times
    assert deadlines[0] < deadlines[1]
    assert outcomes(job_id) == ["completed"]


def test_a_lease_that_cannot_be_renewed_is_given_up_by_the_workers_own_clock(
    connection, declare, short_leases
):
    """B9: every renewal fails; past the trusted time complete() asks no database."""
    refused = []

    @declare("silenced", takes_context=True, backoff=Fixed(0))
    def handler(context):
        if context.attempt == 1:
            outlast(context.job_id)
            asked = len(everything.seen)
            try:
                with context.complete():
                    make_report()
            except LeaseLost:  # as said: by no statement
                refused.append(len(everything.seen) - asked)
                raise
        fault.times = 0

    job_id = enqueue("silenced").id
    fault = Fault(ValueError("no way"), match=renewing, times=10**9)
    everything = Fault(None, at=10**9, match=lambda sql: "leasequeue:hold" in sql)
    with watching() as moments, broken_everywhere(fault), broken_everywhere(everything), working():
        moments.wait("job_lease_lost", job_id=job_id, attempt=1)
        moments.wait("job_completed", job_id=job_id, attempt=2)
    assert refused == [0]
    assert (outcomes(job_id), reports()) == (["expired", "completed"], [])


def test_a_claim_that_cannot_be_settled_is_not_renewed_for_ever(connection, declare, short_leases):
    """B7: settling fails for longer than a lease, renewing does not; the job is recovered."""
    runs = []

    @declare("unsettled", takes_context=True)
    def handler(context):
        runs.append(context.attempt)

    job_id = enqueue("unsettled").id
    code = LOST_SESSION[connection.vendor]
    fault = Fault(code, match=lambda sql: "leasequeue:settle" in sql, times=10**9)
    with watching() as moments, broken_everywhere(fault), working():
        moments.wait("job_lease_lost", job_id=job_id, attempt=1)
        assert moments.named("leases_renewed")
        fault.times = 0
        moments.wait("leases_recovered", timeout=short_leases + 5)
        moments.wait("job_completed", job_id=job_id, attempt=2)
    assert (runs, outcomes(job_id)) == ([1, 2], ["expired", "completed"])


def test_a_settlement_that_fails_three_times_is_written_at_the_fourth(
    connection, declare, short_leases
):
    """B7: three blips are no reason to run the job again."""
    job_id = enqueue("blips", queue="default").id
    declare("blips")(lambda: None)
    code = LOST_SESSION[connection.vendor]
    fault = Fault(code, match=lambda sql: "leasequeue:settle" in sql, times=3)
    with watching() as moments, broken_everywhere(fault), working():
        moments.wait("job_completed", job_id=job_id, attempt=1)
    assert fault.fired == 3
    assert outcomes(job_id) == ["completed"]


def test_a_completion_whose_commit_fails_three_times(connection, declare, short_leases):
    """B7: COMMIT itself fails before the server had it; effects once, when it is done."""

    @declare("committing", takes_context=True, backoff=Fixed(0))
    def handler(context):
        with context.complete():
            make_report(f"attempt-{context.attempt}")

    job_id = enqueue("committing").id
    code = LOST_SESSION[connection.vendor]
    fault = Fault(code, match=lambda sql: sql == "COMMIT", times=3)
    with watching() as moments, broken_everywhere(fault), working():
        moments.wait("job_completed", job_id=job_id, timeout=short_leases + 10)
    assert fault.fired == 3
    done = job(job_id)
    assert reports() == [f"attempt-{done.attempts}"]
    assert outcomes(job_id)[-1] == "completed"


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_row_that_is_held_longer_than_its_lease_during_renewal(
    connection, second_connection, declare, short_leases
):
    """B17: renewals wait for nobody and come to nothing; the lease counts as lost in time."""

    @declare("held", takes_context=True, backoff=Fixed(0))
    def handler(context):
        if context.attempt > 1:
            return
        with holding_job(second_connection(), context.job_id):
            outlast(context.job_id)
            with context.complete():
                make_report()

    job_id = enqueue("held").id
    with watching() as moments, working():
        moments.wait("job_lease_lost", job_id=job_id, attempt=1)
        moments.wait("job_completed", job_id=job_id, attempt=2)
    assert any(event["pending"] for event in moments.named("leases_renewed"))
    assert not any(event["count"] for event in moments.named("leases_renewed")[:2])
    assert (outcomes(job_id), reports()) == (["expired", "completed"], [])
