"""S3: a lease is renewed while its handler runs, and losing it ends the handler."""

from __future__ import annotations

import time

import pytest

from django_leasequeue import LeaseLost, enqueue
from django_leasequeue.runtime.holds import Holds
from tests.core.arrange import claim_one, job, outcomes, write
from tests.core.reports import make_report, reports
from tests.faults import watching
from tests.field.workers import working
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("connection")


@pytest.mark.parametrize("seconds", [6, 60, 3600])
def test_a_lease_is_renewed_each_third_of_its_length(connection, seconds):
    """From the claim, and from each renewal on."""
    enqueue("arranged")
    held = claim_one(connection, lease=seconds)
    holds = Holds()
    hold = holds.add(held, since=100.0)
    assert holds.due(100 + seconds / 3 - 0.01) == []
    assert holds.due(100 + seconds / 3) == [hold]
    hold.extend(200.0)
    assert holds.due(200 + seconds / 3 - 0.01) == []
    assert holds.due(200 + seconds / 3) == [hold]
    write(connection, held.job_id, status="ready")


def test_a_handler_longer_than_its_lease_runs_once(declare, short_leases):
    """The worker renews it, by itself."""
    runs = []

    @declare("long", takes_context=True)
    def long(context):
        runs.append(context.attempt)
        first = job(context.job_id).lease_until
        moments.wait("leases_renewed", count=4)
        assert job(context.job_id).lease_until > first

    made = enqueue("long")
    with watching() as moments, working():
        moments.wait("job_completed", job_id=made.id)
    assert (runs, outcomes(made.id)) == ([1], ["completed"])


def test_a_lost_lease_cancels_the_handler(connection, declare, short_leases):
    """It cannot finish the attempt either: what another has made of the job stands."""
    seen = []

    @declare("long", takes_context=True)
    def long(context):
        seen.append("started")
        try:
            while True:
                time.sleep(0.01)
        except LeaseLost:
            seen.append("cancelled")
        with context.complete():
            make_report()

    made = enqueue("long")
    with watching() as moments, working():
        wait_until(lambda: seen == ["started"])
        # As recovery and another worker's claim have left it.
        write(connection, made.id, lease_token=b"\1" * 16, leased_by="another", claims=2)
        moments.wait("job_lease_lost", job_id=made.id)
    assert seen == ["started", "cancelled"]
    row = job(made.id)
    assert (row.status, row.leased_by, reports()) == ("reserved", "another", [])
    assert outcomes(made.id) == []
    write(connection, made.id, status="ready", lease_until=None, lease_token=None)
