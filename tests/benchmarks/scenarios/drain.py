"""Draining jobs that do nothing: what the queue itself costs."""

from __future__ import annotations

from functools import partial

from tests.benchmarks.drains import GROUPED, PER_JOB, Drain, drainer, limit
from tests.benchmarks.rounds import Bench, Comparison, Contestant, Scenario


def contestants(bench: Bench) -> dict[str, Contestant]:
    """Return a worker in each of its shapes, and both limits."""
    drain = partial(Drain, bench.folder, count=bench.jobs)
    return {
        "1 child": drain(drainer("--processes", "1")),
        "per-job limit": drain(limit(*PER_JOB)),
        "grouped limit": drain(limit(*GROUPED)),
        "2 children": drain(drainer("--processes", "2")),
        "solo": drain(drainer("--solo")),
        "8 threads": drain(drainer("--processes", "1", "--threads", "8")),
    }


SCENARIO = Scenario(
    name="drain",
    title="Drain of jobs that do nothing",
    unit="jobs/s",
    contestants=contestants,
    comparisons=(
        Comparison("1 child", "per-job limit", at_least=1.0),
        Comparison("1 child", "grouped limit", at_least=0.5),
        Comparison("2 children", "per-job limit"),
        Comparison("solo", "per-job limit"),
        Comparison("8 threads", "per-job limit"),
    ),
)
