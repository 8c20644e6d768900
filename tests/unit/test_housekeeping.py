"""Housekeeping: how often a worker looks for leases that have run out."""

from __future__ import annotations

import pytest

from django_leasequeue.runtime import housekeeping
from django_leasequeue.runtime.housekeeping import Recovery


@pytest.mark.parametrize(("lease", "seconds"), [(5, 5 / 12), (30, 2.5), (60, 5.0), (3600, 5.0)])
def test_every_5_s_or_twelfth_of_a_lease(monkeypatch, lease, seconds):
    """Seed S1 looks every 5 s; no lease is so short that this would be late."""
    now, looks = [100.0], []
    monkeypatch.setattr(housekeeping, "ticks", lambda: now[0])
    monkeypatch.setattr(housekeeping, "any_expired", lambda connection: looks.append(now[0]))
    recovery = Recovery(lease)
    for moment in (0.0, seconds * 0.99, seconds, seconds * 1.99, seconds * 2.01):
        now[0] = 100.0 + moment
        recovery.run_if_due(None, lambda: False, looks.append)
    assert looks == [100.0, 100.0 + seconds, 100.0 + seconds * 2.01]
