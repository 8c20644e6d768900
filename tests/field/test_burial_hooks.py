"""The `failed` hook runs once for a death, however long it takes, and a stop ends it."""

from __future__ import annotations

import threading

import pytest

from django_leasequeue import Reject, enqueue
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.charges import Ended
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.slots import UNSTARTED
from tests.core.arrange import claim_jobs, job, run
from tests.faults import watching
from tests.field.workers import drain

pytestmark = pytest.mark.usefixtures("connection")


def test_a_hook_that_outlasts_its_lease_runs_once(connection, declare, short_leases):
    """The burial is renewed while the hook runs: it ends only after two renewals are seen."""
    before = {*threading.enumerate()}
    calls: list[int] = []
    with watching() as moments:

        def hook(context, error):
            calls.append(context.job_id)
            moments.wait("leases_renewed", count=2)

        def refuse():
            raise Reject("no")

        declare("dies", failed=hook)(refuse)
        made = enqueue("dies").id
        drain()
        drain()
    assert calls == [made]
    assert job(made).lease_until is None
    assert {*threading.enumerate()} <= before  # asyncio's own may be there from other tests


def test_a_malformed_payload_has_no_hook(connection, declare):
    """A job that died before any handler could refuse it: its burial is closed, quietly."""
    calls: list[int] = []
    declare("dies", failed=lambda context, error: calls.append(context.job_id))(lambda: None)
    made = enqueue("dies")
    run(connection, "UPDATE leasequeue_job SET attempts = 5, payload = '[1]'")
    drain()
    drain()
    buried = job(made.id)
    assert (buried.status, buried.lease_until, calls) == ("dead", None, [])


def test_a_hook_that_a_stop_came_before_is_no_failure(connection, declare):
    """It goes back quietly and is not counted: it has its turn, however often that happens."""
    declare("dies", failed=lambda context, error: None)(lambda: None)
    made = enqueue("dies")
    run(connection, "UPDATE leasequeue_job SET attempts = 5")
    assert claim_jobs(connection) == [] and job(made.id).status == "dead"
    burials = Burials("w:h:1:ab", 60, Holds())
    with watching() as moments:
        for _ in range(5):
            burials.wake()
            charge = burials.take(connection)
            assert charge is not None
            burials.add(Ended(charge, UNSTARTED, 0.0))
            burials.flush(connection)
            assert (job(made.id).bury_tries, job(made.id).lease_token) == (0, None)
        assert not moments.named("burial_failed")
    drain()
    assert job(made.id).lease_until is None
