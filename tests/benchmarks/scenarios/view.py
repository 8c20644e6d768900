"""A drain while an old read view keeps the server from removing what is no longer current."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connections

from django_leasequeue.models import JobAttempt
from tests.benchmarks.drains import PER_JOB, Drain, drainer, limit
from tests.benchmarks.rounds import Bench, Bound, Comparison, Scenario

_BEGIN = {
    "mysql": ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION"),
    "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ",),
    "sqlite": ("BEGIN",),
}


#: A drain so short that its last tenth ends in one moment of the clock.
_CLOCK = 0.001


@dataclass
class UnderView(Drain):
    """A drain whose whole course another session's snapshot outlives."""

    def run(self) -> dict[str, float]:
        """Return the rate, and the last tenth's as a share of the first tenth's."""
        holder = connections.create_connection(self.alias)
        try:
            with holder.cursor() as cursor:
                for statement in _BEGIN[holder.vendor]:
                    cursor.execute(statement)
                cursor.execute("SELECT COUNT(*) FROM leasequeue_job")
                rate = super().run()[""]
                cursor.execute("ROLLBACK")
        finally:
            holder.close()
        return {"": rate, "last tenth of first": self._flatness()}

    def _flatness(self) -> float:
        ends = JobAttempt.objects.using(self.alias).order_by("finished_at", "id")
        moments = list(ends.values_list("finished_at", flat=True))
        tenth = max(1, len(moments) // 10)
        first = (moments[tenth] - moments[0]).total_seconds()
        last = (moments[-1] - moments[-1 - tenth]).total_seconds()
        return first / max(last, _CLOCK)


def contestants(bench: Bench) -> dict[str, UnderView]:
    """Return a worker and the plain loop, on twice the jobs."""
    count = 2 * bench.jobs
    return {
        "1 child": UnderView(bench.folder, drainer("--processes", "1"), count),
        "per-job limit": UnderView(bench.folder, limit(*PER_JOB), count),
    }


SCENARIO = Scenario(
    name="view",
    title="Drain under a held read view",
    unit="jobs/s",
    contestants=contestants,
    comparisons=(
        Comparison("1 child", "per-job limit"),
        Comparison("1 child, last tenth of first", "per-job limit, last tenth of first"),
    ),
    bounds=(Bound("1 child, last tenth of first", at_least=0.77, unit=""),),
)
