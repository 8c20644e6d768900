"""Leases that cannot be renewed: none is taken then, and the held ones are watched to their end."""

from __future__ import annotations

from types import SimpleNamespace

from django_leasequeue import enqueue
from django_leasequeue.core.lease import Lease
from django_leasequeue.runtime import renewer
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.worker import Worker
from tests.faults import codes_for, make_error, watching
from tests.field.workers import QUICK, working


def test_without_a_session_for_renewals_nothing_is_claimed(
    connection, declare, monkeypatch, short_leases
):
    """B11: the worker says so once, and begins as soon as there is one."""

    def refuse(alias, lease):
        raise make_error(connection, codes_for(connection)[-1])

    monkeypatch.setattr(renewer, "_SAY_SECONDS", 0.2)
    declare("waits")(lambda: None)
    job_id = enqueue("waits").id
    with watching() as moments, monkeypatch.context() as broken:
        broken.setattr(renewer, "open_control", refuse)
        with working():
            moments.wait("renewal_failed")
            moments.wait("recovery_passed", count=len(moments.named("recovery_passed")) + 3)
            assert not moments.named("job_claimed")
            assert len(moments.named("renewal_failed")) == 1
            broken.undo()
            moments.wait("job_completed", job_id=job_id)


def test_no_try_to_reach_the_database_outlasts_a_lease_that_ends(short_leases, monkeypatch):
    """A22: during an outage control stays with a handler whose lease is about to end."""
    worker = Worker(**QUICK)
    hold = Hold(Lease(1, b"t" * 16), 2.0, trusted_until=ticks() + 0.4)
    looks = []
    crew = SimpleNamespace(
        charges=[SimpleNamespace(hold=hold)], wait=lambda wakeup, seconds: wakeup.wait(0.05)
    )
    monkeypatch.setattr(worker, "crew", crew)
    monkeypatch.setattr(worker, "_look_after_crew", lambda: looks.append(ticks()))
    try:
        worker._pause(0.0)
        assert ticks() >= hold.trusted_until
        assert len(looks) >= 4
        hold.trusted_until = ticks() + 60  # renewed: the pause is as long as was asked for
        looks.clear()
        worker._pause(0.0)
        assert not looks
    finally:
        worker.wakeup.close()
