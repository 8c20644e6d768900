"""Limits: an attempt that was told to end is killed in time, and none that has not begun."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from django_leasequeue.core.lease import Lease
from django_leasequeue.runtime.charges import Charge
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.messages import Cause

LEASE = 60.0
LIMITS = Limits(kill_after=5.0)


def charge(*, trusted_until: float, started_at: float | None) -> Charge:
    hold = Hold(Lease(1, b"t" * 16), LEASE, trusted_until=trusted_until)
    assignment: Any = SimpleNamespace(limit=None)
    found = Charge(assignment, hold, given_at=0.0, started_at=started_at)
    found.cause, found.told_at = Cause.LOST, 100.0
    return found


@pytest.mark.parametrize(("now", "due"), [(100.0, False), (103.0, True), (105.0, True)])
def test_a_handler_is_gone_before_the_next_worker_may_have_its_job(now, due):
    assert LIMITS.kill_due(charge(trusted_until=103.0, started_at=1.0), now) is due


@pytest.mark.parametrize(("now", "due"), [(103.0, False), (105.0, True)])
def test_what_has_not_begun_kills_nobody_before_its_time(now, due):
    """Its process may run another job, whose lease is as good as new."""
    assert LIMITS.kill_due(charge(trusted_until=103.0, started_at=None), now) is due
