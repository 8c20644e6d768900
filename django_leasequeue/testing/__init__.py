"""Helpers for a project's tests: run jobs on the test's connection, see what was enqueued."""

from __future__ import annotations

from django_leasequeue.testing.clock import QueueClock, advance, freeze
from django_leasequeue.testing.enqueued import (
    CapturedJobs,
    assert_enqueued,
    assert_not_enqueued,
    capture_jobs,
)
from django_leasequeue.testing.faults import SimulatedCrash, crash_after, expire_lease, lose_lease
from django_leasequeue.testing.running import Ran, run_jobs

__all__ = [
    "CapturedJobs",
    "QueueClock",
    "Ran",
    "SimulatedCrash",
    "advance",
    "assert_enqueued",
    "assert_not_enqueued",
    "capture_jobs",
    "crash_after",
    "expire_lease",
    "freeze",
    "lose_lease",
    "run_jobs",
]
