"""Faults on purpose: leases that end, and processes that die, at a moment of the test's choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from django.db import connections

from django_leasequeue.conf import get_conf
from django_leasequeue.core.simulate import end_lease, take_lease
from django_leasequeue.models import Job
from django_leasequeue.runtime import calling, executor
from django_leasequeue.runtime.context import JobContext

__all__ = ["SimulatedCrash", "crash_after", "expire_lease", "lose_lease"]

POINTS = ("claim", "effect", "handler", "complete")


class SimulatedCrash(BaseException):
    """The process that runs the job dies here: `run_jobs` ends the attempt as crashed."""


def expire_lease(job: Job | int, *, using: str | None = None) -> None:
    """Let the lease of a running `job`, or id, have run out, as after a worker's death.

    The next recovery, that of `run_jobs` say, takes the job back. Raises ValueError when the job
    is not running.
    """
    _change(end_lease, job, using)


def lose_lease(job: Job | int, *, using: str | None = None) -> None:
    """Let another worker have the lease of a running `job`, or id; who had it writes nothing more.

    Raises ValueError when the job is not running.
    """
    _change(take_lease, job, using)


def _change(change: Any, job: Job | int, using: str | None) -> None:
    job_id = job if isinstance(job, int) else job.pk
    if not change(connections[using or get_conf().DATABASE], job_id):
        raise ValueError(f"job {job_id} is not running: it has no lease")


@contextmanager
def crash_after(point: str, name: str | None = None) -> Iterator[None]:
    """Let the process that runs a job die once, right after `point`, inside the block.

    Points: "claim" (before the handler), "effect" (an effect is committed, `name` says which),
    "complete" (a handler's complete() is committed), "handler" (it has returned, nothing is
    settled). Works with `run_jobs`, which goes on as a worker does after a child's death. Raises
    AssertionError at the end of the block when the point was not reached.
    """
    if point not in POINTS:
        raise ValueError(f"point is one of {', '.join(POINTS)}, not {point!r}")
    reached: list[str] = []
    with _instrument(point, name, reached):
        yield
    if not reached:
        raise AssertionError(f"no job came to the point {point!r}")


def _die(reached: list[str], point: str) -> None:
    if not reached:
        reached.append(point)
        raise SimulatedCrash(f"after {point}")


def _instrument(point: str, name: str | None, reached: list[str]) -> AbstractContextManager[Any]:
    if point in ("claim", "handler"):
        return mock.patch.object(executor, "call_handler", _calling(point, reached))
    original = getattr(JobContext, point)

    @contextmanager
    def watched(context: JobContext, *args: Any, **kwargs: Any) -> Iterator[Any]:
        with original(context, *args, **kwargs) as value:
            yield value
        if name is None or name in args or kwargs.get("name") == name:
            _die(reached, point)

    return mock.patch.object(JobContext, point, watched)


def _calling(point: str, reached: list[str]) -> Any:
    original = calling.call_handler

    def call(*args: Any, **kwargs: Any) -> Any:
        if point == "claim":
            _die(reached, point)
        outcome = original(*args, **kwargs)
        _die(reached, point)
        return outcome

    return call
