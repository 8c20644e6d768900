"""Handlers that wait for five milliseconds: do two children do twice the work?"""

from __future__ import annotations

from functools import partial

from tests.benchmarks.drains import Drain, drainer
from tests.benchmarks.rounds import Bench, Comparison, Contestant, Scenario


def contestants(bench: Bench) -> dict[str, Contestant]:
    """Return one child and two; a tenth of the jobs, for these take long."""
    drain = partial(Drain, bench.folder, count=max(20, bench.jobs // 10), job_type="bench.sleep")
    return {
        "1 child": drain(drainer("--processes", "1")),
        "2 children": drain(drainer("--processes", "2")),
    }


SCENARIO = Scenario(
    name="sleep",
    title="Handlers of 5 ms",
    unit="jobs/s",
    contestants=contestants,
    comparisons=(Comparison("2 children", "1 child", at_least=1.9),),
)
