"""Counters of a reserved job, for the tests of what ends spend."""

from __future__ import annotations

from hypothesis import strategies as st

from django_leasequeue.outcomes import Budget


def budget(
    *,
    attempts: int = 1,
    max_attempts: int = 5,
    crashes: int = 0,
    max_crashes: int = 3,
    releases: int = 0,
) -> Budget:
    """Return the counters of a job in its first attempt, unless told otherwise."""
    return Budget(attempts, max_attempts, crashes, max_crashes, releases)


#: Whatever counters a row may hold; also 0 attempts, which another language may have written.
budgets = st.builds(
    Budget,
    attempts=st.integers(0, 70),
    max_attempts=st.integers(0, 70),
    crashes=st.integers(0, 10),
    max_crashes=st.integers(0, 10),
    releases=st.integers(0, 25),
)
