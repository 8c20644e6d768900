"""Fixtures for pytest: `run_jobs`, `queue_clock`, `captured_jobs`; pytest loads it when installed.

It loads it before there are settings, so nothing of Django is imported before a test asks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django_leasequeue.testing import CapturedJobs, QueueClock, Ran

__all__ = ["captured_jobs", "queue_clock", "run_jobs"]


@pytest.fixture
def run_jobs() -> Callable[..., list[Ran]]:
    """`django_leasequeue.testing.run_jobs`; the test itself asks for its database (`db`)."""
    from django_leasequeue.testing import run_jobs as run

    return run


@pytest.fixture
def queue_clock(request: Any) -> Iterator[QueueClock]:
    """The queue's clock, stopped at the database's time: `queue_clock.advance(60)`."""
    if not {"db", "transactional_db"} & set(request.fixturenames):
        request.getfixturevalue("db")
    from django_leasequeue.testing import freeze

    with freeze() as clock:
        yield clock


@pytest.fixture
def captured_jobs() -> Iterator[CapturedJobs]:
    """The jobs that the test enqueues from here on."""
    from django_leasequeue.testing import capture_jobs

    with capture_jobs() as captured:
        yield captured
