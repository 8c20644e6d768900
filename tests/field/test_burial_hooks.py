"""The `failed` hook runs once for a death, however long it takes, and a stop ends it."""

from __future__ import annotations

import threading

import pytest

from django_leasequeue import Reject, enqueue
from tests.core.arrange import job, run
from tests.faults import watching
from tests.field.workers import drain

pytestmark = pytest.mark.usefixtures("connection")


def test_a_hook_that_outlasts_its_lease_runs_once(connection, declare, short_leases):
    """The burial is renewed while the hook runs: it ends only after two renewals are seen."""
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
    assert threading.active_count() == 1


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
