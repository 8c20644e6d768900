"""The fixtures of the core's and the processes' tests, and leases short enough to see them end."""

from __future__ import annotations

import pytest

from tests.core.conftest import as_default, attempt, declare, lane_clock, session
from tests.process.conftest import by_proxy, gate, process_environment, proxy

__all__ = [
    "as_default",
    "attempt",
    "by_proxy",
    "declare",
    "gate",
    "lane_clock",
    "process_environment",
    "proxy",
    "session",
    "short_leases",
]


@pytest.fixture
def short_leases(settings) -> float:
    """Allow leases of a second and more in this process; return a good one."""
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "MIN_LEASE": 1, "LEASE": 2}
    return 2
