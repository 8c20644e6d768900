"""Eight workers on one lane."""

from __future__ import annotations

from functools import partial

from tests.benchmarks.drains import PER_JOB, Drain, drainer, limit
from tests.benchmarks.rounds import Bench, Comparison, Contestant, Scenario

WORKERS = 8


def contestants(bench: Bench) -> dict[str, Contestant]:
    """Return eight workers, eight loops, and one worker to see what the others add."""
    drain = partial(Drain, bench.folder, count=bench.jobs)
    return {
        "8 workers": drain(drainer("--processes", "1"), copies=WORKERS),
        "8 per-job limits": drain(limit(*PER_JOB), copies=WORKERS),
        "1 worker": drain(drainer("--processes", "1")),
    }


SCENARIO = Scenario(
    name="contend",
    title="Eight workers contending for one lane",
    unit="jobs/s",
    contestants=contestants,
    comparisons=(
        Comparison("8 workers", "8 per-job limits"),
        Comparison("8 workers", "1 worker"),
    ),
)
