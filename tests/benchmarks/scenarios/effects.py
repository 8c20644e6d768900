"""Jobs that write one row: in the transaction that completes them, or in an atomic handler's."""

from __future__ import annotations

from functools import partial

from tests.benchmarks.drains import PER_JOB, Drain, drainer, limit
from tests.benchmarks.rounds import Bench, Comparison, Scenario


def contestants(bench: Bench) -> dict[str, Drain]:
    """Return both kinds of handler and the loop with the same INSERT."""
    drain = partial(Drain, bench.folder, count=bench.jobs, effects=True)
    one = drainer("--processes", "1")
    # As docs/ops/postgresql.md advises; the loop has the driver's own default, which is the same.
    prepared = {"server_side_binding": True, "prepare_threshold": 5}
    found = {
        "complete()": drain(one, job_type="bench.complete"),
        "per-job limit with the row": drain(limit(*PER_JOB, "--effect")),
        "atomic=True": drain(one, job_type="bench.atomic"),
        "complete(), 2 children": drain(drainer("--processes", "2"), job_type="bench.complete"),
    }
    if bench.kind == "postgres":
        found["complete(), prepared"] = drain(one, job_type="bench.complete", options=prepared)
    return found


SCENARIO = Scenario(
    name="effects",
    title="Drain of jobs that write a row",
    unit="jobs/s",
    contestants=contestants,
    comparisons=(
        Comparison("complete()", "per-job limit with the row", at_least=0.5),
        Comparison("complete(), prepared", "per-job limit with the row", at_least=0.5),
        Comparison("atomic=True", "per-job limit with the row"),
        Comparison("complete(), 2 children", "per-job limit with the row"),
    ),
)
