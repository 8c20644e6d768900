"""The fixtures for pytest, also where the package is not installed and its plugin not loaded."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue, pytest_plugin

pytestmark = pytest.mark.django_db

run_jobs = pytest_plugin.run_jobs
queue_clock = pytest_plugin.queue_clock
captured_jobs = pytest_plugin.captured_jobs


def test_fixtures(queue_clock, captured_jobs, run_jobs):
    enqueue("t", delay=5)
    assert len(captured_jobs) == 1
    assert run_jobs() == []
    queue_clock.advance(6)
    assert len(run_jobs()) == 1
