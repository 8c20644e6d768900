"""A hundred priorities in fifty queues: 5 000 lanes, against the same jobs in one."""

from __future__ import annotations

from django.db import connections

from tests.benchmarks import tables
from tests.benchmarks.drains import Drain, drainer
from tests.benchmarks.rounds import Bench, Comparison, Contestant, Scenario


class ManyLanes(Drain):
    """A drain whose jobs are spread evenly, first over priorities, then over queues."""

    def prepare(self) -> None:
        """Fill the empty tables."""
        tables.empty(self.alias)
        concat = connections[self.alias].vendor == "mysql"
        queue = "CONCAT('queue-', b.n % 50)" if concat else "'queue-' || (b.n % 50)"
        # A thousand jobs give each queue twenty priorities, the next thousand the next twenty.
        priority = "(a.n * 20 + (b.n - b.n % 50) / 50) % 100"
        tables.fill(self.alias, self.count, queue=queue, priority=priority)
        tables.analyze(self.alias)


def contestants(bench: Bench) -> dict[str, Contestant]:
    """Return a worker on many lanes, and on one."""
    command = drainer("--processes", "1")
    return {
        "5 000 lanes": ManyLanes(bench.folder, command, bench.jobs),
        "1 lane": Drain(bench.folder, command, bench.jobs),
    }


SCENARIO = Scenario(
    name="lanes",
    title="100 priorities in each of 50 queues",
    unit="jobs/s",
    contestants=contestants,
    comparisons=(Comparison("5 000 lanes", "1 lane"),),
)
