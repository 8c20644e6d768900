"""A worker that runs while something else is measured."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.benchmarks import tables
from tests.benchmarks.drains import Drain, WrongResult, worker
from tests.benchmarks.rounds import Bench

_SECONDS = 60
_LOOK = 0.02


@contextmanager
def running_worker(bench: Bench, settings: dict[str, object] | None = None) -> Iterator[None]:
    """Run a worker with one child on empty tables; it has done a job when the block starts."""
    tables.empty("default")
    process = Drain(bench.folder, worker("--processes", "1"), 1, settings=settings or {}).start(
        "running"
    )
    try:
        finish(enqueue("bench.noop", {"n": 0}).pk)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_SECONDS)
        finally:
            process.kill()
            process.wait()


def finish(job_id: int, after: float = 0.0) -> Job:
    """Return the job once it is done, looked for again and again from `after` seconds on.

    Raises WrongResult when that takes a minute.
    """
    time.sleep(after)
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        found = Job.objects.get(pk=job_id)
        if found.status == "done":
            return found
        time.sleep(_LOOK)
    raise WrongResult(f"job {job_id} is {Job.objects.get(pk=job_id).status} after {_SECONDS} s")
