"""What a project's tests call."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import assert_type

from django_leasequeue.models import Job
from django_leasequeue.testing import (
    QueueClock,
    Ran,
    advance,
    assert_enqueued,
    assert_not_enqueued,
    capture_jobs,
    crash_after,
    expire_lease,
    freeze,
    lose_lease,
    run_jobs,
)


def running(job: Job) -> None:
    assert_type(run_jobs(queues="mail", limit=3, raise_errors=True), list[Ran])
    (ran,) = run_jobs()
    assert_type(ran.job, Job)
    assert_type(ran.outcome, str)
    assert_type(ran.error, BaseException | None)
    expire_lease(job)
    lose_lease(7)
    lose_lease("7")  # type: ignore[arg-type]


def seeing() -> None:
    assert_type(assert_enqueued("orders.work"), list[Job])
    assert_not_enqueued("orders.work")
    with capture_jobs() as captured:
        assert_type(list(captured), list[Job])
        assert_type(len(captured), int)


def waiting(moment: datetime) -> None:
    with freeze(moment) as clock:
        assert_type(clock, QueueClock)
        assert_type(clock.advance(60), datetime)
    with advance(60), crash_after("claim"):
        pass
    passing: AbstractContextManager[None] = advance(60)
    passing.__enter__()
